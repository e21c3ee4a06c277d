"""The vocabulary of a policy: Stage, Carry, Buffer, Access and the Pipeline that holds them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.errors import InputError, did_you_mean
from simulator.quantities import NOTHING, Work

KINDS = frozenset({"compute", "input", "lookup", "all_to_all", "all_reduce", "parameter_server"})
COMPUTE_STREAM = "compute"
SELECTORS = ("all", "shared", "missing", "next", "later", "single", "expired", "hot", "cold", "own")


@dataclass(frozen=True)
class Access:
    """A read or a write of a named store by one stage.

    `keys` selects which keys of the batch: `all`; by their use before, `shared` (the previous batch used
    them as well) or `missing` (no batch used them within the last `within`); by their use after, `next`
    (the next batch uses them), `expired` (none of the next `within` does), `single` (expired, and looked
    up once in all ranks' batches) or `later` (neither `next` nor `single`); by how popular they are, `hot`
    (of those that every rank holds for good) or `cold` (the others); by whose update it is, `own` (the one
    that the rank has made itself, not those of other ranks).

    A store with a place for each batch is a buffer, and `of` says how many batches back the touched
    place belongs to (1: the one that the previous batch trained on); None means a store that persists,
    such as the tables in host memory. `late` says how many batches later than a key's own the stage
    touches it. A write replaces what its place holds; with `adds` it adds the batch's update to that, as an
    optimizer does in place, or a parameter server: what others have written there meanwhile stays. Raises
    InputError for an unknown selector.
    """

    store: str
    keys: str = "all"
    of: int | None = 0
    within: int = 0
    late: int = 0
    adds: bool = False

    def __post_init__(self) -> None:
        """Refuse selectors that nobody knows."""
        if self.keys not in SELECTORS:
            raise InputError(
                f'store "{self.store}": no keys are "{self.keys}"{did_you_mean(self.keys, SELECTORS)}'
            )


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of a batch's life on one stream.

    `work` is an amount, never a duration. `after` holds stages of the same batch, as objects, so
    that order is acyclic by construction. `ahead` issues the stage that many batches early;
    `every` and `phase` run it in every P-th batch only (batches b with b mod every = phase).
    `reads` and `writes` declare the stores it touches. Raises InputError on impossible values, such as a
    read that adds.
    """

    name: str
    kind: str
    work: Work = NOTHING
    after: Sequence["Stage"] = ()
    ahead: int = 0
    every: int = 1
    phase: int = 0
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown kinds and periods that make no sense."""
        object.__setattr__(self, "after", tuple(self.after))
        if self.kind not in KINDS:
            raise InputError(
                f'stage "{self.name}": unknown kind "{self.kind}"{did_you_mean(self.kind, KINDS)}'
            )
        if self.ahead < 0 or self.every < 1 or not 0 <= self.phase < self.every:
            raise InputError(f'stage "{self.name}": needs ahead >= 0, every >= 1 and 0 <= phase < every')
        if any(read.adds for read in self.reads):
            raise InputError(f'stage "{self.name}": a read cannot add, only a write can')


@dataclass(frozen=True, eq=False)
class Carry:
    """`to` of batch k waits for `source` of batch k - lag (order only; staleness is declared beside it)."""

    source: Stage
    to: Stage
    lag: int = 1


@dataclass(frozen=True, eq=False)
class Buffer:
    """`slots` places, one taken by each batch's `taken_by` and freed when all of `freed_by` are done.

    An entry of `freed_by` is a stage, or `(stage, n)` for that stage of the batch n later. Places `in_cache`
    are part of a cache that the tables' memory tier keeps on the device anyway; others take memory of their
    own.
    """

    name: str
    slots: int
    taken_by: Stage
    freed_by: Sequence["Stage | tuple[Stage, int]"]
    in_cache: bool = False

    def releases(self) -> Iterator[tuple[Stage, int]]:
        """Yield (stage, lag): `taken_by` of batch k waits for that stage of batch k - lag."""
        for entry in self.freed_by:
            stage, later = entry if isinstance(entry, tuple) else (entry, 0)
            yield stage, self.slots - later


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Stages in stream order, plus the constraints between batches.

    `updates` are the stages whose completion ends a step (default: the last compute stage);
    `compute` names the stream whose waiting is exposed time. `row_updates` are the stages that add a
    batch's gradients to rows (default: those of `updates` that rewrite what they read); `caches` holds
    bytes of device memory that rows take from the first batch to the last. Raises InputError when a stage
    stands twice, or a stage that is named elsewhere stands on no stream.
    """

    streams: Mapping[str, Sequence[Stage]]
    carries: Sequence[Carry] = ()
    buffers: Sequence[Buffer] = ()
    updates: Sequence[Stage] = ()
    compute: str = COMPUTE_STREAM
    row_updates: Sequence[Stage] = ()
    caches: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[Stage, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that every stage named anywhere stands on exactly one stream."""
        stages = tuple(stage for stream in self.streams.values() for stage in stream)
        object.__setattr__(self, "stages", stages)
        if not self.streams.get(self.compute):
            raise InputError(f'the pipeline has no stage on its compute stream "{self.compute}"')
        if not self.updates:
            object.__setattr__(self, "updates", (self.streams[self.compute][-1],))
        if not self.row_updates:
            object.__setattr__(self, "row_updates", tuple(s for s in self.updates if _rewrites(s)))
        self._check_names(stages)
        self._check_known(stages)

    def _check_names(self, stages: Sequence[Stage]) -> None:
        names: set[str] = set()
        for stage in stages:
            if stage.name in names:
                raise InputError(f'stage "{stage.name}" stands twice in the pipeline; names must be unique')
            names.add(stage.name)

    def _check_known(self, stages: Sequence[Stage]) -> None:
        known = {id(stage) for stage in stages}
        for stage in self._mentioned(stages):
            if id(stage) not in known:
                raise InputError(f'stage "{stage.name}" is waited for but stands on no stream')

    def _mentioned(self, stages: Sequence[Stage]) -> Iterator[Stage]:
        for stage in stages:
            yield from stage.after
        for carry in self.carries:
            yield from (carry.source, carry.to)
        for buffer in self.buffers:
            yield buffer.taken_by
            yield from (stage for stage, _ in buffer.releases())
        yield from (*self.updates, *self.row_updates)

    def stream_of(self, stage: Stage) -> str:
        """Return the name of the stream that `stage` stands on."""
        return next(name for name, stream in self.streams.items() if any(one is stage for one in stream))


def _rewrites(stage: Stage) -> bool:
    """Whether it writes only stores that it has read."""
    return {write.store for write in stage.writes} <= {read.store for read in stage.reads}
