"""A cluster's wiring as a description: groups of equal hosts, and the network that joins them.

The description is what scales: it is folded without a graph, and drawn as a graph where one is wanted.
Hosts fill domains, domains leaves, leaves pods, in order; each group begins a new leaf (and pod).
What is left over makes a last, smaller domain, leaf or pod, which is counted as a part of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.graphs.inside import Inside
from simulator.hardware.graphs.networks import FLAT, Network, Nics


@dataclass(frozen=True)
class Group:
    """`hosts` equal hosts of `per_host` accelerators; `domain_hosts` of them make one fast domain.

    `inside` wires a domain. `nics` may be None where a single domain is all there is. Where each
    accelerator keeps to its own NICs, accelerator i uses NIC i * NICs // accelerators, or all of an
    equal share of them. Raises InputError when the counts do not fit each other.
    """

    hosts: int
    per_host: int
    inside: Inside
    nics: Nics | None = None
    domain_hosts: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        """Check the counts against each other."""
        owner = self.name or "hosts"
        checks.counts(owner, hosts=self.hosts, per_host=self.per_host, domain_hosts=self.domain_hosts)
        self.inside.check(self.per_host, self.domain_hosts)
        if self.per_host % self.rails and self.rails % self.per_host:
            uneven = f"{self.rails} NICs cannot be shared evenly by {self.per_host} accelerators"
            raise InputError(f"{owner}: {uneven}")

    @property
    def rails(self) -> int:
        """The NICs of one host; 1 if it has none."""
        return self.nics.per_host if self.nics else 1

    def even_parts_out(self) -> list[float]:
        """Return an accelerator's even part, bytes/s, of each class of links to the network, if any."""
        if self.nics is None:
            return []
        size = self.per_host * self.domain_hosts
        links = self.inside.links(size)
        ways = [count * link.rate / size for name, (count, link) in links.items() if name in self.inside.out]
        return [*ways, self.nics.per_host * self.nics.link.rate / self.per_host]

    def nics_of(self, local: int) -> range:
        """Return the NICs that accelerator `local` of a host uses."""
        if not self.inside.pins_nics:
            return range(self.rails)
        each = max(1, self.rails // self.per_host)
        first = local * self.rails // self.per_host
        return range(first, first + each)


@dataclass(frozen=True)
class Pod:
    """`count` equal pods."""

    label: str
    count: int


@dataclass(frozen=True)
class Leaf:
    """`count` equal leaves in each pod of `pod`; `number` is that of the group and tells leaves apart."""

    label: str
    pod: Pod
    count: int
    number: int


@dataclass(frozen=True)
class Part:
    """`domains` equal fast domains of `hosts` hosts below each leaf of `leaf`."""

    label: str
    leaf: Leaf
    domains: int
    hosts: int
    group: Group

    @property
    def domain_ranks(self) -> int:
        """The ranks of one domain."""
        return self.hosts * self.group.per_host

    @property
    def leaf_ranks(self) -> int:
        """The ranks of this part below one leaf."""
        return self.domains * self.domain_ranks

    @property
    def pod_ranks(self) -> int:
        """The ranks of this part in one pod."""
        return self.leaf.count * self.leaf_ranks

    @property
    def ranks(self) -> int:
        """The ranks of this part."""
        return self.leaf.pod.count * self.pod_ranks


@dataclass(frozen=True)
class Wiring:
    """Groups of hosts on one network; ranks count through the groups, hosts and accelerators in order.

    Raises InputError: several domains without NICs, domains that do not fill leaves, rails that do
    not fit the hosts, groups without distinct names.
    """

    groups: tuple[Group, ...]
    network: Network = FLAT

    def __post_init__(self) -> None:
        """Check the groups against the network and each other."""
        if not self.groups:
            raise InputError("a wiring needs at least one group of hosts")
        names = [group.name for group in self.groups]
        if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
            raise InputError("groups of hosts need names of their own")
        for group in self.groups:
            self._check(group)
        self.network.check(self.hosts, len(self.groups))
        if self.network.in_rails and len({group.rails for group in self.groups}) > 1:
            raise InputError("on rails all groups need the same number of NICs per host")

    def _check(self, group: Group) -> None:
        owner, leaf = group.name or "hosts", self.network.leaf_hosts
        if group.nics is None and (len(self.groups) > 1 or group.hosts > group.domain_hosts):
            raise InputError(f"{owner}: several fast domains need NICs")
        if leaf is not None and leaf % group.domain_hosts:
            domain = f"fast domains of {group.domain_hosts} hosts"
            raise InputError(f"{owner}: {domain} do not fill leaves of {leaf} hosts")
        if not self.network.in_rails:
            return
        if group.rails > group.per_host and group.inside.pins_nics:
            several = f"{group.rails} NICs serve {group.per_host} accelerators"
            raise InputError(f"{owner}: on rails an accelerator has one NIC, but {several}")
        if self.network.relays and not (group.inside.pins_nics and group.rails == group.per_host):
            raise InputError(f"{owner}: relays through peers need a NIC for each accelerator")

    @property
    def ranks(self) -> int:
        """The number of accelerators."""
        return sum(group.hosts * group.per_host for group in self.groups)

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return sum(group.hosts for group in self.groups)

    def resized(self, ranks: int) -> "Wiring":
        """Return the wiring with another number of hosts; raise InputError if that is ambiguous."""
        if ranks == self.ranks:
            return self
        if len(self.groups) > 1:
            raise InputError(f"{ranks} ranks could be shared by {len(self.groups)} groups in many ways")
        hosts, left = divmod(ranks, self.groups[0].per_host)
        if left or hosts < 1:
            raise InputError(f"{ranks} ranks do not fill hosts of {self.groups[0].per_host}")
        return replace(self, groups=(replace(self.groups[0], hosts=hosts),))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts in rank order: pods, in them leaves, in them domains, whole ones before the last."""
        return tuple(part for number in range(len(self.groups)) for part in self._parts(number))

    def _parts(self, number: int) -> Iterator[Part]:
        group, network = self.groups[number], self.network
        name = group.name if len(self.groups) > 1 else ""
        whole = -(-group.hosts // group.domain_hosts) * group.domain_hosts
        leaf = network.leaf_hosts or whole
        pod = leaf * (network.pod_leaves or -(-whole // leaf))
        for top, pods, pod_hosts in _runs(group.hosts, pod, name, "last pod"):
            shared = Pod("", 1) if network.pod_leaves is None else Pod(top, pods)
            for middle, leaves, leaf_hosts in _runs(pod_hosts, leaf, top, "last leaf"):
                home = Leaf(middle, shared, leaves, number)
                for low, domains, hosts in _runs(leaf_hosts, group.domain_hosts, middle, "last domain"):
                    yield Part(low, home, domains, hosts, group)


def _runs(hosts: int, size: int, label: str, last: str) -> Iterator[tuple[str, int, int]]:
    """Yield label, count and size of the whole parts, then of what is left."""
    whole, left = divmod(hosts, size)
    if whole:
        yield label, whole, size
    if left:
        yield f"{label} {last}".strip() if whole else label, 1, left


def peers(here: Part, there: Part) -> dict[int, int]:
    """Return how many ranks of `there` a rank of `here` meets first in its leaf, in its pod, or above.

    Keys are 1 (leaf), 2 (pod) and 3 (above); ranks of its own domain are left out.
    """
    leaf = there.leaf_ranks if here.leaf == there.leaf else 0
    pod = there.pod_ranks if here.leaf.pod == there.leaf.pod else 0
    domain = there.domain_ranks if here == there else 0
    return {1: leaf - domain, 2: pod - leaf, 3: there.ranks - pod}
