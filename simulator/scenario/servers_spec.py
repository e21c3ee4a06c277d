"""Hosts in a scenario: those of accelerators written out, and those of parameter servers with their calls."""

from simulator.hardware import Host, catalog
from simulator.hardware.servers import Rpc, Servers
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bandwidth, Bytes, Count, Fraction, MoneyRate, Power, Time
from simulator.units import usd_per_hour


class HostSpec(Spec):
    """A host written out instead of named from the catalog."""

    name: str
    cores: Count
    dram_bytes: Bytes
    dram_bandwidth: Bandwidth
    dram_efficiency: Fraction
    power_watts: Power | None = None
    price_usd_per_hour: MoneyRate | None = None
    cache_bytes: Bytes = 0.0
    ssd_bytes: Bytes | None = None
    ssd_bandwidth: Bandwidth | None = None
    pcie_bandwidth: Bandwidth | None = None

    def build(self) -> Host:
        """Return the host."""
        return Host(**{**dict(self), "price_usd_per_hour": usd_per_hour(self.price_usd_per_hour)})


class RpcSpec(Spec):
    """What the software of a remote call costs.

    Of a client: `first` round of calls to all servers, each `pipelined` call more, each call `in_turn`,
    and bytes at `bandwidth`. Of one core of a server: each `server_call`, and bytes at
    `server_bandwidth`. What is left out costs nothing.
    """

    first: Time = 0.0
    in_turn: Time = 0.0
    pipelined: Time = 0.0
    bandwidth: Bandwidth | None = None
    server_call: Time = 0.0
    server_bandwidth: Bandwidth | None = None

    def build(self) -> Rpc:
        """Return the costs."""
        mine, theirs = (1.0 / rate if rate else 0.0 for rate in (self.bandwidth, self.server_bandwidth))
        return Rpc(self.first, self.in_turn, self.pipelined, mine, self.server_call, theirs)


class ServersSpec(Spec):
    """The parameter servers (and the host of an oracle): `host`, `bandwidth` of its network card, `rpc`.

    `key_time`: what one core needs to decide on one looked-up key when an oracle looks ahead.
    """

    host: str | HostSpec
    bandwidth: Bandwidth
    rpc: RpcSpec = RpcSpec()
    key_time: Time = 0.0

    def build(self) -> Servers:
        """Return the servers. Raises InputError for an unknown host."""
        host = catalog.host(self.host) if isinstance(self.host, str) else self.host.build()
        return Servers(host, self.bandwidth, self.rpc.build(), self.key_time)
