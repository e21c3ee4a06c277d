"""The parts of a cluster: accelerators, hosts, NICs. Nominal rates in SI units, and the share reached.

The nominal figure is what the maker prints; the efficiency is what real work reaches of it. They
stay apart because they have different sources and only the second one is ever fitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.errors import InputError, did_you_mean
from simulator.hardware import checks

KINDS = ("gpu", "npu", "tpu")


@dataclass(frozen=True)
class Accelerator:
    """What one rank drives: engines with their own memory. A die of a dual-die package counts alone.

    `peak_flops` is dense flop/s (a multiply-add counts as two) by precision: fp32, tf32, fp16, bf16,
    fp8, int8. `hbm_bytes` and `cache_bytes` (the on-chip memory that can serve repeated row reads)
    are bytes, `hbm_bandwidth` bytes/s, `host_link_bandwidth` bytes/s in each direction, `launch_time`
    seconds on the device per kernel. The efficiencies are the shares reached by large matrix products
    (of the peak), by element-wise passes and by random row reads (both of `hbm_bandwidth`).
    `vector_flops` is flop/s outside the matrix engines. `sparse_cores` and `tensor_cores` count the
    cores of a TPU chip and are zero elsewhere. The price is that of the accelerator and its part of
    the server, in USD per hour; the power is the accelerator's alone, in watts; None is unknown.
    """

    name: str
    kind: str
    peak_flops: Mapping[str, float] = field(hash=False)
    hbm_bytes: float
    hbm_bandwidth: float
    cache_bytes: float
    launch_time: float
    matrix_efficiency: float
    memory_efficiency: float
    gather_efficiency: float
    host_link_bandwidth: float
    vector_flops: float | None = None
    sparse_cores: int = 0
    tensor_cores: int = 0
    price_usd_per_hour: float | None = None
    power_watts: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        if self.kind not in KINDS:
            raise InputError(f"{self.name}: no kind {self.kind!r}{did_you_mean(self.kind, KINDS)}")
        if not self.peak_flops:
            raise InputError(f"{self.name}: at least one peak rate is needed")
        checks.positive(self.name, **self.peak_flops)
        checks.positive(self.name, hbm_bytes=self.hbm_bytes, hbm_bandwidth=self.hbm_bandwidth)
        checks.positive(self.name, host_link_bandwidth=self.host_link_bandwidth)
        checks.not_negative(self.name, cache_bytes=self.cache_bytes, launch_time=self.launch_time)
        checks.not_negative(self.name, sparse_cores=self.sparse_cores, tensor_cores=self.tensor_cores)
        checks.shares(self.name, matrix_efficiency=self.matrix_efficiency)
        checks.shares(self.name, memory_efficiency=self.memory_efficiency)
        checks.shares(self.name, gather_efficiency=self.gather_efficiency)
        _check_known(self, "vector_flops", "price_usd_per_hour", "power_watts")

    @property
    def streaming_bandwidth(self) -> float:
        """Bytes/s that element-wise passes reach in device memory."""
        return self.hbm_bandwidth * self.memory_efficiency

    def peak(self, precision: str) -> float:
        """Return the dense peak in flop/s; raise InputError naming the known precisions if it has none."""
        if precision in self.peak_flops:
            return self.peak_flops[precision]
        known = ", ".join(self.peak_flops)
        raise InputError(f'{self.name} has no peak rate for precision "{precision}" (known: {known})')


@dataclass(frozen=True)
class Host:
    """The cores and DRAM that the accelerators of one server share.

    `cores` are physical; `dram_bytes` in bytes; `dram_bandwidth` in bytes/s is nominal and
    `dram_efficiency` the share of it that random reads of embedding rows reach. `power_watts` is
    what the server draws beside its accelerators; `price_usd_per_hour` only where the price of the
    accelerator does not contain the host. `cache_bytes` is the last-level cache of all its processors
    (0: not modelled), `ssd_bytes` and `ssd_bandwidth` (bytes/s of random page reads) are those of all
    its disks. `pcie_bandwidth` (bytes/s, in each direction) is what all accelerators together can copy
    to or from the host where they share switches; None: each has lanes of its own. None is unknown.
    """

    name: str
    cores: int
    dram_bytes: float
    dram_bandwidth: float
    dram_efficiency: float
    power_watts: float | None = None
    price_usd_per_hour: float | None = None
    cache_bytes: float = 0.0
    ssd_bytes: float | None = None
    ssd_bandwidth: float | None = None
    pcie_bandwidth: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        checks.counts(self.name, cores=self.cores)
        checks.positive(self.name, dram_bytes=self.dram_bytes, dram_bandwidth=self.dram_bandwidth)
        checks.shares(self.name, dram_efficiency=self.dram_efficiency)
        checks.not_negative(self.name, cache_bytes=self.cache_bytes)
        _check_known(self, "power_watts", "price_usd_per_hour", "pcie_bandwidth")
        _check_known(self, "ssd_bytes", "ssd_bandwidth")


@dataclass(frozen=True)
class Nic:
    """A network card: `bandwidth` in bytes/s in each direction."""

    name: str
    bandwidth: float

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        checks.positive(self.name, bandwidth=self.bandwidth)


def _check_known(part: Accelerator | Host, *fields: str) -> None:
    values = {name: getattr(part, name) for name in fields}
    checks.positive(part.name, **{name: value for name, value in values.items() if value is not None})
