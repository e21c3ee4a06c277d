"""What the software of a training job adds to the work itself: launches, gaps, unfused passes, widths.

Everything here is a property of a framework and its release, never of one job. Times that belong to no
resource of ours are held on the compute stream, and reports say so.
"""

from dataclasses import dataclass, field
from dataclasses import replace as replaced

from simulator.costs.dense import DenseSpeed
from simulator.costs.model import CostModel
from simulator.errors import InputError, did_you_mean
from simulator.hardware import Accelerator, Cluster
from simulator.quantities import NOTHING, Amount, DenseWork, HoldWork, InTurn, Work

# Launches per table and step of a framework that does not fuse tables (our count): forward take the keys,
# look up, put into place; backward take the gradient, sort keys, add up, read state, write rows.
OPERATIONS_PER_TABLE = 8
PASSES = ("fused", "eager")
KEY_DISTRIBUTIONS = ("exchange", "full_batch")


@dataclass(frozen=True)
class Precision:
    """Number formats of single tensors; None leaves what the workload says.

    `weights` are rows as stored, `wire` rows and their gradients on the way, `gradients` those of the
    dense model in the all-reduce.
    """

    weights: str | None = None
    wire: str | None = None
    gradients: str | None = None


@dataclass(frozen=True)
class Software:
    """One framework in one release; times in seconds, the loader in samples/s per host.

    `slowdown`: dense kernels take so many times what their shapes ask for. `time_per_key`: device time for
    each key that an owner receives, beyond the gather. `passes` are `fused` or `eager` (a kernel for every
    arithmetic operation). Under the key distribution `full_batch` every rank copies all keys of the
    job and picks its own, instead of an exchange. Tables of up to `small_tables` bytes are
    held by all ranks. `gather_efficiency` replaces the accelerator's. Raises InputError on impossible values.
    """

    family: str = ""
    release: str = ""
    graph_capture: bool = True
    fixed_cost_per_step: float = 0.0
    host_time_per_op: float = 0.0
    slowdown: float = 1.0
    time_per_key: float = 0.0
    passes: str = "fused"
    key_distribution: str = "exchange"
    small_tables: float = 0.0
    loader_rate: float | None = None
    gather_efficiency: float | None = None
    precision: Precision = field(default_factory=Precision)

    def __post_init__(self) -> None:
        """Refuse unknown words and a gather that reaches nothing."""
        for word, known in ((self.passes, PASSES), (self.key_distribution, KEY_DISTRIBUTIONS)):
            if word not in known:
                raise InputError(f'unknown value "{word}"{did_you_mean(word, known)}')
        if self.gather_efficiency is not None and not 0 < self.gather_efficiency <= 1:
            raise InputError("gather_efficiency must lie above 0 and not above 1")

    @property
    def full_batch(self) -> bool:
        """Whether every rank copies the keys of all."""
        return self.key_distribution == "full_batch"

    def per_step(self, kernels: float, tables: int) -> Work:
        """Return what is held in each step: fixed, and the host's time for every launch.

        `kernels` are those of one forward pass, of which the backward pass has twice as many. A
        captured graph costs the host nothing per operation.
        """
        launches = 3 * kernels + OPERATIONS_PER_TABLE * tables
        host = 0.0 if self.graph_capture else launches * self.host_time_per_op
        why = f"time that {self.family or 'the framework'} takes beside its kernels"
        parts = (("fixed_cost_per_step", self.fixed_cost_per_step), ("host_time_per_op", host))
        held = tuple(HoldWork(seconds, why, f"software.{name}") for name, seconds in parts if seconds)
        return InTurn(held) if held else NOTHING

    def per_keys(self, keys: Amount) -> Work:
        """Return what is held for `keys` that an owner receives."""
        if not self.time_per_key:
            return NOTHING
        why = f"time that {self.family or 'the framework'} takes per key"
        return HoldWork(keys * self.time_per_key, why, "software.time_per_key")

    def loading(self, samples: float) -> Work:
        """Return the time in which the loader of a host yields `samples`."""
        if self.loader_rate is None:
            return NOTHING
        return HoldWork(samples / self.loader_rate, "time that the loader takes", "software.loader_rate")

    def on(self, cluster: Cluster) -> Cluster:
        """Return the cluster as this software's kernels find it: all of its groups gather alike."""
        reached = self.gather_efficiency
        if reached is None:
            return cluster
        return cluster.with_groups(
            [
                replaced(group, accelerator=replaced(group.accelerator, gather_efficiency=reached))
                for group in cluster.groups
            ]
        )

    def costs(self, costs: CostModel) -> CostModel:
        """Return `costs` with dense kernels as slow as this software's."""
        return costs if self.slowdown == 1.0 else replaced(costs, dense=Slowed(costs.dense, self.slowdown))


PLAIN_SOFTWARE = Software()


@dataclass(frozen=True)
class Slowed:
    """Dense work that takes `factor` times as long as `dense` says."""

    dense: DenseSpeed
    factor: float

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return the time of `work` on `accelerator`, seconds."""
        return self.factor * self.dense.seconds(work, accelerator)
