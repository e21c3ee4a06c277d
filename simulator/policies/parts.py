"""The stages that policies are made of, under the names the field uses for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.pipeline import Access, Carry, Pipeline, Stage
from simulator.policies.base import Fragment, IntraBatch
from simulator.quantities import Work
from simulator.sharding.micro import MicroStep
from simulator.sharding.passes import DensePart
from simulator.sharding.plan import PlacedPlan
from simulator.sharding.reading import read_samples
from simulator.sharding.step import TrainStep

HOST = Access("host rows", of=None)
ROWS = Access("rows on device")
IN_PLACE = Access("tables on device", of=None)


def rows_of(placed: PlacedPlan) -> Access:
    """Return where a batch's rows are used: in a buffer on the device or, all of them, where they live."""
    return IN_PLACE if placed.in_place else ROWS


def buffered(step: TrainStep, *accesses: Access) -> tuple[Access, ...]:
    """Return `accesses` to row buffers and to what stands behind them; none where rows are used in place."""
    return () if step.placed.in_place else accesses


def read_inputs(step: TrainStep, ahead: int = 0, parts: int = 1) -> Stage:
    """Host cores read and prepare a batch, and cluster it for `parts` micro-batches (NestPipe stage 1)."""
    return Stage("read", "input", read_samples(step, parts), ahead=ahead)


def copy_inputs(step: TrainStep, read: Stage, ahead: int = 0) -> Stage:
    """The batch's keys and dense features go to device memory (NestPipe stage 2)."""
    return Stage("inputs", "input", step.copy_inputs, after=[read], ahead=ahead)


def route_keys(step: TrainStep, inputs: Stage, ahead: int = 0) -> Stage:
    """Distinct keys go to the ranks that own their rows (NestPipe stage 3)."""
    return Stage("route", "lookup", step.route_keys, after=[inputs], ahead=ahead)


def retrieve_rows(step: TrainStep, route: Stage, ahead: int = 0) -> Stage:
    """Owners read the rows asked for and put them into a device buffer (NestPipe stage 4).

    Rows from parameter servers make it a `parameter_server` stage, others a `lookup`; where tables live in
    both, it is one stage with the kind of the larger part of the bytes. So is `write_back`.
    """
    reads, writes = buffered(step, HOST), buffered(step, ROWS)
    return Stage("retrieve", step.lookup_kind, step.retrieve_rows, [route], ahead, reads=reads, writes=writes)


def write_back(step: TrainStep, after: Sequence[Stage]) -> Stage:
    """Updated rows return from the device buffer to where tables live, in the place of what is there."""
    reads, writes = buffered(step, ROWS), buffered(step, HOST)
    return Stage("write_back", step.lookup_kind, step.write_back, after, reads=reads, writes=writes)


def add_back(step: TrainStep, after: Sequence[Stage]) -> Stage:
    """The updates of rows, not the rows, go to where tables live and are added to what is there.

    So nothing is lost where other batches have written since the rows were read. `TrainStep.add_back` says
    what it takes.
    """
    reads, writes = buffered(step, ROWS), buffered(step, replace(HOST, adds=True))
    return Stage("write_back", step.lookup_kind, step.add_back, after, reads=reads, writes=writes)


def exchange_rows(micro: MicroStep, rows: Stage, label: str = "") -> Stage:
    """Rows travel from their owners to the ranks that asked (all-to-all)."""
    read = rows_of(micro.traffic.placed)
    return Stage(f"exchange{label}", "all_to_all", micro.exchange_rows, after=[rows], reads=(read,))


def forward(micro: MicroStep, exchange: Stage, label: str = "") -> Stage:
    """The dense model's forward pass."""
    return Stage(f"forward{label}", "compute", micro.forward, after=[exchange])


def send_gradients(micro: MicroStep, backward: Stage, label: str = "") -> Stage:
    """Row gradients travel back to the owners (all-to-all)."""
    return Stage(f"send{label}", "all_to_all", micro.send_gradients, after=[backward])


@dataclass(frozen=True, eq=False)
class Backward:
    """The backward pass in buckets, the last one first, each followed by its all-reduce."""

    computes: tuple[Stage, ...]
    reduces: tuple[Stage, ...]


def backward(
    micro: MicroStep, forward_pass: Stage, label: str = "", reduce: bool = True, adds: float = 0.0
) -> Backward:
    """Return the backward buckets after `forward_pass`; without `reduce`, one stage and no all-reduce.

    Gradients are added to those before in a share `adds` of all batches.
    """
    works = micro.backward_buckets if reduce else (micro.backward,)
    works = tuple(micro.adding(work, len(works), adds) for work in works) if adds else works
    if not reduce:
        return Backward((Stage(f"backward{label}", "compute", works[0], after=[forward_pass]),), ())
    return reduced_backward(micro.whole, works, forward_pass, label)


def reduced_backward(
    part: DensePart, works: Sequence[Work], before: Stage, label: str = "", of: str = ""
) -> Backward:
    """Return the buckets `works` of a part's backward pass after `before`, each with its all-reduce.

    `of` comes before the names of both.
    """
    computes: list[Stage] = []
    for index, work in enumerate(works):
        after = computes[-1:] or [before]
        computes.append(Stage(f"{of}backward{label}.{index}", "compute", work, after=after))
    reduces = [
        Stage(f"{of}reduce.{index}", "all_reduce", part.all_reduce_bucket, after=[compute])
        for index, compute in enumerate(computes)
    ]
    return Backward(tuple(computes), tuple(reduces))


@dataclass(frozen=True, eq=False)
class Updates:
    """The two updates of a step: rows at their owners, dense parameters everywhere.

    `rows` leaves the rows current. `computes` and `reduces` are what both put on those streams.
    """

    rows: Stage
    dense: Stage
    computes: tuple[Stage, ...]
    reduces: tuple[Stage, ...] = ()


def update(
    step: TrainStep, sends: Sequence[Stage], reduces: Sequence[Stage], last: Stage, kind: str = "compute"
) -> Updates:
    """Return the row update once all gradients are in, and the optimizer once all are reduced.

    Each of `sends` brings the row gradients of one of as many equal micro-batches. `kind` is that of the
    row update: `lookup` where it runs beside the dense passes and not among them.
    """
    work, used = step.sparse_update(len(sends)), rows_of(step.placed)
    rows = Stage("sparse_update", kind, work, after=sends, reads=(used,), writes=(replace(used, adds=True),))
    dense = Stage("optimizer", "compute", step.optimizer, after=[*reduces, last])
    if not step.synchronize_every:
        return Updates(rows, dense, (dense, rows))
    every = step.synchronize_every
    touched = (used, *buffered(step, HOST))
    average = Stage(
        "synchronize", "all_reduce", step.synchronize, [rows], 0, every, every - 1, touched, touched
    )
    current = Stage("rows_current", kind, after=[rows, average], reads=(used,), writes=(used,))
    return Updates(current, dense, (dense, rows, current), (average,))


def settled(back: Stage, part: Fragment) -> list[Carry]:
    """Return what keeps an averaging of copies in `part` from losing updates.

    It fetches rows of earlier batches as well, and so waits for the write-back `back` of the batch before.
    """
    return [Carry(back, to=one) for stream in part.streams.values() for one in stream if HOST in one.reads]


def rows_first(done: Updates) -> tuple[Stage, ...]:
    """Return the updates on the compute stream in the order in which rows do not wait for dense gradients."""
    return (*(stage for stage in done.computes if stage is not done.dense), done.dense)


class Ahead:
    """Issues stages earlier than they were made: each by so many batches as `by` says, others not at all.

    Stages that wait for one of them are made anew, too, so that they wait for the new one.
    """

    def __init__(self, by: Mapping[Stage, int]) -> None:
        """Take the stages to move."""
        self.by = by
        self._made: dict[Stage, Stage] = {}

    def __call__(self, stage: Stage) -> Stage:
        """Return what takes the place of `stage`: itself where nothing changes."""
        if stage not in self._made:
            after, ahead = [self(before) for before in stage.after], stage.ahead + self.by.get(stage, 0)
            same = ahead == stage.ahead and all(a is b for a, b in zip(after, stage.after, strict=True))
            self._made[stage] = stage if same else replace(stage, after=after, ahead=ahead)
        return self._made[stage]


class WholeBatch(IntraBatch):
    """The batch is exchanged whole, then computed whole."""

    def fragment(self, step: TrainStep, rows: Stage) -> Fragment:
        """Return exchange, forward, backward, gradient exchange and the updates, one after the other."""
        micro = step.micro_batch(1)
        exchange = exchange_rows(micro, rows)
        ahead = forward(micro, exchange)
        back = backward(micro, ahead)
        send = send_gradients(micro, back.computes[-1])
        done = update(step, [send], back.reduces, back.computes[-1])
        streams = {
            "network": [exchange, send],
            "all_reduce": [*back.reduces, *done.reduces],
            "compute": [ahead, *back.computes, *done.computes],
        }
        return Fragment(streams, (exchange,), done.rows, (done.rows, done.dense))


def embed_serially(step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
    """Return a pipeline with one batch in flight: the next is read when this one is written back."""
    read = read_inputs(step, parts=intra_batch.micro_batches)
    inputs = copy_inputs(step, read)
    route = route_keys(step, inputs)
    retrieve = retrieve_rows(step, route)
    part = intra_batch.fragment(step, retrieve)
    back = write_back(step, part.updates)
    streams = {
        "loader": [read],
        "copy": [inputs],
        "key network": [route],
        "host": [retrieve, back],
        **part.streams,
    }
    return Pipeline(streams, carries=[Carry(back, to=read, lag=1)], updates=[*part.updates, back])
