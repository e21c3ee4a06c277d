"""Which stage of a pipeline does what, told by what stages read, write, wait for and work on.

Names play no part, so that policies from outside are read like those of the catalog.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.errors import InputError
from simulator.pipeline import Access, Pipeline, Stage
from simulator.quantities import CopyWork, DenseWork, leaves


@dataclass(eq=False)
class Part:
    """One micro-batch: what brings its rows, the passes over it in order, what takes its gradients away."""

    exchanges: list[Stage]
    passes: list[Stage] = field(default_factory=list)
    sends: list[Stage] = field(default_factory=list)
    products: list[Stage] = field(default_factory=list)
    without_rows: int = 0

    @property
    def begins(self) -> Stage:
        """The pass from which on activations are kept: the first that multiplies matrices."""
        return (self.products or self.passes)[0]

    @property
    def turns_back(self) -> Stage:
        """The pass from which on there are row gradients: the one after the first that uses rows."""
        if not self.products or not self.exchanges:
            return self.passes[:2][-1]
        return self.products[self.without_rows : self.without_rows + 2][-1]

    @property
    def expands(self) -> Stage | None:
        """The stage that makes of exchanged rows what the model reads, where no pass does that itself."""
        first = self.passes[0]
        return None if _is_pass(first) or not self.exchanges else first

    def packs(self, send: Stage) -> tuple[Stage, ...]:
        """Return the stages between the passes and `send` that make of the model's gradients what is sent."""
        passes = {id(one) for one in self.passes}
        return tuple(one for one in send.after if self.expands and id(one) not in passes)

    def add(self, stage: Stage) -> None:
        """Add the next pass."""
        self.passes.append(stage)
        if _is_pass(stage):
            self.without_rows += not self.exchanges
            self.products.append(stage)


@dataclass(frozen=True, eq=False)
class Roles:
    """The stages of a pipeline in an order that respects `after`, and its micro-batches."""

    pipeline: Pipeline
    order: tuple[Stage, ...]
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, pipeline: Pipeline) -> "Roles":
        """Read a pipeline."""
        order = _in_order(pipeline.stages)
        return cls(pipeline, order, _parts(order))

    @property
    def passes(self) -> tuple[Stage, ...]:
        """The passes over all micro-batches."""
        return tuple(stage for part in self.parts for stage in part.passes)

    @property
    def loads(self) -> tuple[Stage, ...]:
        """Input stages on the host."""
        return tuple(stage for stage in self.order if stage.kind == "input" and not _copies_in(stage))

    @property
    def copies(self) -> tuple[Stage, ...]:
        """Input stages that bring samples to the device."""
        return tuple(stage for stage in self.order if stage.kind == "input" and _copies_in(stage))

    @property
    def fills(self) -> tuple[tuple[str, Stage], ...]:
        """(row buffer, the stage that writes it first). Raises InputError where rows have no buffer."""
        found: dict[str, Stage] = {}
        for stage in self.order:
            for write in stage.writes:
                if write.of is not None:
                    found.setdefault(write.store, stage)
        self._refuse_lost_rows(found)
        return tuple(found.items())

    def writers(self, store: str) -> tuple[Stage, ...]:
        """Return the stages that write a row buffer."""
        return tuple(stage for stage in self.order if any(write.store == store for write in stage.writes))

    def _refuse_lost_rows(self, found: dict[str, Stage]) -> None:
        for stage in self.order:
            lost = [read.store for read in stage.reads if read.of is not None and read.store not in found]
            if lost:
                raise InputError(f'stage "{stage.name}" reads "{lost[0]}", which no stage writes')
            brings = stage.kind in ("lookup", "parameter_server") and _copies_in(stage)
            if brings and not any(self._keeps(write) for write in stage.writes):
                raise InputError(f'stage "{stage.name}" brings rows to the device but writes no row buffer')

    def _keeps(self, write: Access) -> bool:
        """Whether it goes to a row buffer or to a cache on the device."""
        return write.of is not None or write.store in self.pipeline.caches

    def followers(self, send: Stage) -> tuple[Stage, ...]:
        """Return the stages that use what `send` brought; the end of the step if none says so."""
        waiting = tuple(stage for stage in self.order if any(one is send for one in stage.after))
        return waiting or tuple(self.pipeline.updates)


def _in_order(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return `stages` by the longest way to each; those equally far in the order given."""
    depth: dict[int, int] = {}

    def of(stage: Stage) -> int:
        if id(stage) not in depth:
            depth[id(stage)] = 1 + max((of(before) for before in stage.after), default=0)
        return depth[id(stage)]

    return tuple(sorted(stages, key=of))


def _parts(order: Sequence[Stage]) -> tuple[Part, ...]:
    """Follow rows from each exchange through the stages that wait for it.

    A pass that waits for an exchange itself begins a micro-batch (or belongs to the one that the exchange
    is of already), others belong to that of the latest stage they wait for. A pass that waits for nothing of
    the kind begins one as well: its rows come from somewhere.
    """
    found: list[Part] = []
    part_of: dict[int, Part] = {}
    for stage in order:
        if _is_exchange(stage):
            continue
        direct = [before for before in stage.after if _is_exchange(before)]
        part = _part(direct, part_of, found, _latest(stage, part_of)) or _latest(stage, part_of)
        if part is None and _is_pass(stage):
            found.append(part := Part([]))
        if part is None:
            continue
        if stage.kind == "all_to_all" or _is_push(stage):
            part.sends.append(stage)
        elif stage.kind != "all_reduce" and (direct or not stage.writes):
            part_of[id(stage)] = part
            if direct or _is_pass(stage):
                part.add(stage)
    return tuple(found)


def _part(
    direct: list[Stage], part_of: dict[int, Part], found: list[Part], begun: Part | None
) -> Part | None:
    """Return the micro-batch of these exchanges; None without exchanges.

    Exchanges that are of none yet are of the one that passes without rows have `begun`, or of a new one.
    """
    if not direct:
        return None
    known = next((part_of[id(one)] for one in direct if id(one) in part_of), None)
    if known is None and begun is not None and not begun.exchanges:
        known = begun
    part = known or Part([])
    if known is None:
        found.append(part)
    for one in direct:
        if part_of.setdefault(id(one), part) is part and one not in part.exchanges:
            part.exchanges.append(one)
    return part


def _latest(stage: Stage, part_of: dict[int, Part]) -> Part | None:
    """Return the micro-batch of the stages that `stage` waits for."""
    known = [part_of[id(before)] for before in stage.after if id(before) in part_of]
    return known[-1] if known else None


def _is_exchange(stage: Stage) -> bool:
    return stage.kind == "all_to_all" and bool(stage.reads) and not stage.writes


def _is_push(stage: Stage) -> bool:
    """Whether it takes gradients to parameter servers, straight from a pass."""
    return stage.kind == "parameter_server" and any(_is_pass(before) for before in stage.after)


def _is_pass(stage: Stage) -> bool:
    """Whether it computes products of matrices: a pass over the dense model, not an optimizer."""
    dense = (leaf for leaf in leaves(stage.work) if isinstance(leaf, DenseWork))
    return stage.kind == "compute" and any(np.any(leaf.flops) for leaf in dense)


def _copies_in(stage: Stage) -> bool:
    copies = (leaf for leaf in leaves(stage.work) if isinstance(leaf, CopyWork))
    return any(leaf.path == "host_to_device" for leaf in copies)
