"""Two-dimensional sparse parallelism as a policy, and which policies can be nested in which."""

from dataclasses import replace

import pytest

from simulator.errors import InfeasibleError, InputError
from simulator.pipeline import Access, Stage
from simulator.policies import catalog
from simulator.policies.base import Fragment
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.frozen_window import FrozenWindow
from simulator.policies.nested import Nested
from simulator.policies.parts import WholeBatch
from simulator.policies.serialized import Serialized
from simulator.policies.two_d_sparse import TwoDSparse
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding import Replicas, RowWise, ShardingPlan, TrainStep
from simulator.testing import check_policy, example_steps, structure


@pytest.fixture(scope="module")
def grouped() -> Scenario:
    return load(shipped_folder() / "sharding" / "two_d_sparse.yaml").with_workers(128)


@pytest.mark.parametrize("inner", sorted(catalog.ONE_COPY))
def test_the_plan_is_that_of_the_policy_across_batches(inner: str) -> None:
    plain = next(example_steps())
    step = replace(plain, plan=ShardingPlan(RowWise("dram"), replicas=Replicas(2, every=2)))
    ours, theirs = catalog.build("two_d_sparse", inter_batch=inner), catalog.build(inner)
    assert structure(ours.plan(step)) == structure(theirs.plan(step))
    assert any(stage.name == "synchronize" and stage.every == 2 for stage in ours.plan(step).stages)
    assert (ours.consistency, ours.staleness_steps) == (theirs.consistency, theirs.staleness_steps)
    check_policy(ours, step)


def test_on_one_copy_it_is_refused_and_no_number_is_given(grouped: Scenario) -> None:
    single = grouped.with_overrides(["sharding.replicas=1"]).with_policy({"kind": "two_d_sparse"})
    with pytest.raises(InfeasibleError, match=r"not applicable here: .*several copies of the tables"):
        run_scenario(single)


def test_nested_it_is_still_refused_on_one_copy(grouped: Scenario) -> None:
    nested = {
        "kind": "nested",
        "inter_batch": {"kind": "two_d_sparse", "inter_batch": "dual_buffer"},
        "intra_batch": {"kind": "frozen_window", "micro_batches": 4},
    }
    assert run_scenario(grouped.with_policy(nested), "vector").report.consistency == "stale"
    with pytest.raises(InfeasibleError, match="several copies"):
        run_scenario(grouped.with_overrides(["sharding.replicas=1"]).with_policy(nested))


def test_around_dual_buffer_and_a_frozen_window_it_is_nestpipe_on_copies(grouped: Scenario) -> None:
    nested = Nested(TwoDSparse(DualBuffer()), FrozenWindow(8))
    nestpipe = catalog.build("nestpipe", micro_batches=8)
    assert structure(nested.plan(grouped.step)) == structure(nestpipe.plan(grouped.step))
    assert nested.needs == ("replicas",)
    assert nested.micro_batches == 8


def test_copies_that_are_averaged_every_so_many_steps_may_lack_that_many_updates(grouped: Scenario) -> None:
    rare = grouped.with_overrides(["sharding.replicas.every=4"]).with_policy({"kind": "two_d_sparse"})
    report = run_scenario(rare, "vector").report
    assert report.consistency == "stale"
    assert report.staleness_steps["declared"] == 3


@pytest.mark.parametrize(
    ("inter", "intra", "reason"),
    [
        ({"kind": "hugectr"}, {"kind": "whole_batch"}, "whole life of a batch.*travel twice"),
        ({"kind": "sparse_core_pipelined"}, {"kind": "whole_batch"}, "whole life of a batch.*travel twice"),
        ({"kind": "dual_buffer"}, {"kind": "hugectr"}, '"hugectr" cannot be the intra_batch'),
        ({"kind": "nestpipe", "micro_batches": 2}, {"kind": "whole_batch"}, "whole life of a batch"),
        (
            {"kind": "frozen_window", "micro_batches": 2},
            {"kind": "whole_batch"},
            '"frozen_window" can be the intra_batch of nested policies, not the inter_batch',
        ),
        (
            {"kind": "dual_buffer"},
            {"kind": "serialized"},
            '"serialized" can be the inter_batch of nested policies, not the intra_batch',
        ),
        (
            {"kind": "torchrec_semi_sync"},
            {"kind": "frozen_window", "micro_batches": 2},
            "both decide when rows are exchanged",
        ),
        ({"kind": "dual_buffe"}, {"kind": "whole_batch"}, 'unknown kind "dual_buffe".*dual_buffer'),
    ],
)
def test_a_pair_that_cannot_be_nested_is_refused_with_the_reason(
    grouped: Scenario, inter: dict[str, object], intra: dict[str, object], reason: str
) -> None:
    policy = {"kind": "nested", "inter_batch": inter, "intra_batch": intra}
    with pytest.raises(InputError, match=reason):
        run_scenario(grouped.with_policy(policy))


class LooksTwoBack(WholeBatch):
    """A fragment that reads rows of the batch before the last, which two buffers do not hold."""

    def fragment(self, step: TrainStep, rows: Stage) -> Fragment:
        part = super().fragment(step, rows)
        late = Stage("late", "lookup", after=[rows], reads=(Access("rows on device", of=2),))
        return replace(part, streams={**part.streams, "late": [late]})


def test_a_pair_whose_buffers_contradict_each_other_is_refused_and_named() -> None:
    step = next(example_steps())
    wanted = r'contradict each other: stage "late" .* 2 batches back, and buffer "rows" has 2 slots'
    with pytest.raises(InputError, match=wanted):
        Nested(DualBuffer(), LooksTwoBack()).plan(step)
    assert Nested(Serialized(), LooksTwoBack()).plan(step).stages


def test_the_names_offered_around_copies_are_those_that_exist() -> None:
    from typing import get_args

    assert set(get_args(catalog.OneCopy)) == set(catalog.ONE_COPY)
    assert set(catalog.INTER_BATCH) == {*catalog.ONE_COPY, "two_d_sparse"}
