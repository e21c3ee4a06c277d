"""Updates of rows that are lost for good or applied twice, in timelines of policies and of faulty ones."""

import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.errors import InputError
from simulator.pipeline import Access, Carry, Pipeline, Stage, compile_pipeline, critical_cycle
from simulator.policies import catalog
from simulator.policies.bagpipe import Bagpipe
from simulator.policies.stale_prefetch import StalePrefetch
from simulator.policies.torchrec import SemiSync
from simulator.quantities import AllToAllWork
from simulator.results.conservation import Updates, conserved
from simulator.results.key_classes import Reuse
from simulator.results.staleness import observe
from simulator.results.timeline import Timeline
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding import HbmCache, RowWise, TrainStep
from simulator.testing import PolicyError, check_policy, example_steps

IN_HOST_MEMORY = "sharding={kind: row_wise, tier: dram}"
NOTHING_WRONG = {"lost_share": 0.0, "duplicated_share": 0.0}
TABLE, PLACE = Access("table", of=None), Access("rows")


def run(pipeline: Pipeline, ns: Mapping[str, int], batches: int = 60) -> Timeline:
    graph = compile_pipeline(pipeline)
    nominal = np.array([[ns.get(node.name, 1)] for node in graph.nodes], dtype=np.int64)
    wide = np.broadcast_to(nominal[:, None, :], (len(nominal), batches // graph.period, 1))
    return run_events(graph, Durations(wide, np.zeros(1, dtype=np.int64), nominal))


def fate(pipeline: Pipeline, ns: Mapping[str, int], chance: float = 1.0) -> Updates:
    found = conserved(run(pipeline, ns), 0, Reuse.alike(chance))
    assert found is not None
    return found


def prefetched(back: Access, *more: Stage) -> Pipeline:
    """Rows are read a batch ahead, and go back as `back` says."""
    retrieve = Stage("retrieve", "lookup", ahead=1, reads=(TABLE,), writes=(PLACE,))
    rows = Stage("exchange", "all_to_all", AllToAllWork(1.0), after=[retrieve], reads=(PLACE,))
    update = Stage("update", "compute", after=[rows], reads=(PLACE,), writes=(replace(PLACE, adds=True),))
    write = Stage("write_back", "lookup", after=[update], reads=(PLACE,), writes=(back,))
    streams = {"host": [retrieve], "network": [rows], "compute": [update], "back": [write, *more]}
    return Pipeline(streams, [Carry(write, to=retrieve, lag=2)], updates=[update, write])


def swapped(pipeline: Pipeline, old: Stage, new: Stage, drop: Carry | None = None) -> Pipeline:
    """The pipeline with another stage in the place of one that no stage names in `after`, or less carries.

    With `drop` no carry is left to its stage.
    """

    def other(one: Stage) -> Stage:
        return new if one is old else one

    return replace(
        pipeline,
        streams={name: [other(one) for one in on] for name, on in pipeline.streams.items()},
        carries=[
            Carry(other(c.source), other(c.to), c.lag)
            for c in pipeline.carries
            if not drop or c.to is not drop.to
        ],
        buffers=[
            replace(b, freed_by=[(other(s), b.slots - lag) for s, lag in b.releases()])
            for b in pipeline.buffers
        ],
        updates=[other(one) for one in pipeline.updates],
        row_updates=[other(one) for one in pipeline.row_updates],
    )


@dataclass(frozen=True)
class Mutant:
    """A policy of which the write-back replaces rows instead of adding to them, or a carry is dropped."""

    kind: str
    carry: str = ""
    needs: tuple[str, ...] = ()
    cache: float = 0.0

    @property
    def step(self) -> TrainStep:
        """A step to be checked on; rows have a `cache`, a share of them, where the policy needs one."""
        step = next(example_steps(needs=self.needs))
        return replace(step, plan=RowWise(HbmCache(self.cache))) if self.cache else step

    @property
    def consistency(self) -> str:
        return catalog.build(self.kind).consistency

    @property
    def staleness_steps(self) -> int:
        return catalog.build(self.kind).staleness_steps

    def plan(self, step: TrainStep) -> Pipeline:
        pipeline = catalog.build(self.kind).plan(step)
        if self.carry:
            dropped = next(c for c in pipeline.carries if c.to.name == self.carry)
            return swapped(pipeline, dropped.source, dropped.source, dropped)
        back = next(one for one in pipeline.stages if one.name == "write_back")
        plain = tuple(replace(one, adds=False) for one in back.writes)
        return swapped(pipeline, back, replace(back, writes=plain))


@pytest.mark.parametrize(
    "mutant",
    [
        Mutant("stale_prefetch"),
        Mutant("torchrec_semi_sync"),
        Mutant("sparse_core_pipelined"),
        Mutant("dual_buffer", carry="refresh"),
        Mutant("torchrec_fused", carry="retrieve"),
        Mutant("torchrec_prefetch", carry="cached", cache=0.5),
    ],
    ids=repr,
)
def test_a_write_that_replaces_what_it_should_add_to_and_a_carry_less_are_caught(mutant: Mutant) -> None:
    with pytest.raises(PolicyError, match=r"lack an update|lost for good"):
        check_policy(mutant, mutant.step)


@pytest.mark.parametrize("kind", ["stale_prefetch", "torchrec_semi_sync"])
def test_policies_that_read_early_are_late_by_one_update_and_lose_none(kind: str) -> None:
    settings = [f"policy={{kind: {kind}}}", IN_HOST_MEMORY]
    report = run_scenario(load(shipped_folder() / "quickstart.yaml", settings)).report
    assert report.updates == NOTHING_WRONG
    assert report.staleness_steps["observed_max"] == report.staleness_steps["declared"] == 1


def test_stale_prefetch_that_writes_a_stale_buffer_back_loses_about_a_fifth_of_all_updates_and_says_so() -> (
    None
):
    settings = ["policy={kind: stale_prefetch, write_back: overwrite}"]
    one = run_scenario(load(shipped_folder() / "nestpipe" / "npu.yaml", settings)).report
    assert 0.15 < one.updates["lost_share"] < 0.3
    assert one.updates["duplicated_share"] == 0
    assert one.staleness_steps["observed_max"] > 1, "what is lost is missing for longer than what is late"


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.7, 1.0])
def test_a_row_overwritten_by_what_was_read_before_its_update_keeps_every_second_update(
    chance: float,
) -> None:
    """An update is lost if an odd number of batches in a row use its row next: chance / (1 + chance)."""
    found = fate(prefetched(TABLE), {"update": 10}, chance)
    assert found.lost_share == pytest.approx(chance / (1 + chance), rel=0.1, abs=0.01)
    assert "is missing from a row that batch 59 reads" in found.where


def test_updates_that_are_added_are_kept_however_late_rows_were_read() -> None:
    assert fate(prefetched(replace(TABLE, adds=True)), {"update": 10}) == Updates(0.0, 0.0)


def test_an_update_that_is_added_by_two_stages_is_applied_twice() -> None:
    again = Stage("again", "lookup", reads=(PLACE,), writes=(replace(TABLE, adds=True),))
    found = fate(prefetched(replace(TABLE, adds=True), again), {"update": 10})
    assert found.duplicated_share == pytest.approx(1.0)
    assert found.lost_share == 0 and "is in twice" in found.where


def test_rows_that_nobody_takes_back_are_lost() -> None:
    whole = prefetched(replace(TABLE, adds=True))
    write = next(one for one in whole.stages if one.name == "write_back")
    nowhere = replace(write, writes=())
    streams = {name: [nowhere if one is write else one for one in on] for name, on in whole.streams.items()}
    retrieve = whole.streams["host"][0]
    assert fate(Pipeline(streams, [Carry(nowhere, to=retrieve, lag=2)]), {"update": 10}).lost_share == 1


class Forgetful(Bagpipe):
    """Bagpipe that does not apply gradients of rows which one rank looked up once."""

    @property
    def _applied(self) -> tuple[Access, ...]:
        return tuple(access for access in super()._applied if access.keys != "single")


def test_rows_that_one_rank_looks_up_once_are_followed_too() -> None:
    step = next(example_steps(needs=("servers",)))
    assert fate(Bagpipe(lookahead=4).plan(step), {}, chance=0.1).lost_share == 0.0
    assert fate(Forgetful(lookahead=4).plan(step), {}, chance=0.1).lost_share > 0.3


@pytest.mark.parametrize("tier", ["dram", "hbm"])
def test_a_policy_that_loses_updates_and_does_not_say_so_is_refused(tier: str) -> None:
    class Silent(StalePrefetch):
        loses_updates = False  # type: ignore[assignment]

        def plan(self, step):  # type: ignore[no-untyped-def]
            return StalePrefetch("overwrite").plan(step)

    step = replace(next(example_steps()), plan=RowWise(tier))
    check_policy(StalePrefetch("overwrite"), step)
    if tier == "hbm":  # updated in place: nothing is written back
        check_policy(Silent(), step)
        return
    with pytest.raises(PolicyError, match=r"lack an update|lost for good"):
        check_policy(Silent(), step)


def test_a_way_to_write_back_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match='"add" or "overwrite", not "mix"'):
        StalePrefetch("mix")  # type: ignore[arg-type]


def test_a_worker_of_het_sees_its_own_updates_at_once_and_those_of_others_at_a_meeting() -> None:
    """With the updates of all workers in its cache it would see all of them at once: so it does its own."""
    pipeline = catalog.build("het", staleness=3).plan(next(example_steps(needs=("servers",))))
    timeline = run(pipeline, {}, batches=64)
    seen = observe(timeline, 0, range(40, 48), Reuse.alike(0.5, 8))
    assert seen is not None and seen.observed_max == 3 and "own" not in seen.where
    assert conserved(timeline, 0, Reuse.alike(0.5)) == Updates(0.0, 0.0)
    update = next(one for one in pipeline.stages if one.name == "update")
    everyone = replace(update, writes=tuple(replace(one, keys="all") for one in update.writes))
    fresh = observe(run(swapped(pipeline, update, everyone), {}, 64), 0, range(40, 48), Reuse.alike(0.5, 8))
    assert fresh is not None and fresh.observed_max == 0


def test_a_read_cannot_add() -> None:
    with pytest.raises(InputError, match="a read cannot add"):
        Stage("look", "lookup", reads=(replace(TABLE, adds=True),))


def test_stashed_gradients_take_the_all_reduce_out_of_the_step() -> None:
    """The optimizer applies what was reduced in the batch before: a slow all-reduce hides behind a batch."""
    step = next(example_steps(ranks=1))
    step = replace(step, workload=replace(step.workload, bucket_bytes=1e12))

    def period(policy: SemiSync) -> Fraction:
        graph = compile_pipeline(policy.plan(step))
        ns = [500 if node.stage.kind == "all_reduce" else 100 for node in graph.nodes]
        return critical_cycle(len(graph.nodes), graph.edges, ns).ratio

    naive, stashed = period(SemiSync()), period(SemiSync(stash_gradients=True))
    assert stashed < naive
    assert SemiSync(stash_gradients=True).plan(step).caches == {
        "stashed dense gradients": step.dense_gradient_bytes
    }


def test_batches_that_train_synchronously_first_are_told_and_change_no_step() -> None:
    plain = load(shipped_folder() / "quickstart.yaml", ["policy={kind: torchrec_semi_sync}"])
    later = load(
        shipped_folder() / "quickstart.yaml", ["policy={kind: torchrec_semi_sync, start_batch: 100}"]
    )
    one, other = run_scenario(plain).report, run_scenario(later).report
    assert one.step_ms == other.step_ms
    assert any("first 100 batches train synchronously" in note for note in other.notes)


@pytest.mark.parametrize("policy", ["serialized", "dual_buffer", "stale_prefetch"])
def test_the_memory_of_the_replay_does_not_grow_with_the_number_of_batches(policy: str) -> None:
    step = next(example_steps(ranks=1))
    peaks = []
    for batches in (500, 2000):
        timeline = run(catalog.build(policy).plan(step), {}, batches)
        assert timeline.start_ns.size  # the times of the run itself are as long as the run
        tracemalloc.start()
        observe(timeline, 0, range(batches - 10, batches - 5), Reuse.alike(0.5, 6))
        conserved(timeline, 0, Reuse.alike(0.5, 6))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
