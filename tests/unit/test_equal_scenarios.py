"""Equal is equal: names, order, units, folding and writing out change no nanosecond of a scenario's step."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from equal import spelled_out

from simulator.scenario.reporting import make_report
from simulator.scenario.scenario import Scenario, load
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.simulate import run_scenario

SHORT = ["run.batches=14", "run.warm_up=6"]
OWN_LENGTH = {"bagpipe/criteo_kaggle.yaml"}  # its lookahead needs more batches
DRAWN = "sharding={kind: row_wise, owners: drawn, tier: hbm}"
CASES: dict[str, list[str]] = {
    str(path.relative_to(shipped_folder())): []
    for path in sorted(shipped_folder().rglob("*.yaml"))
    if not path.name.endswith((".grid.yaml", ".plan.yaml"))
}
CASES["quickstart.yaml drawn"] = [DRAWN, "run.jitter={compute: 5 %}"]
CASES["quickstart.yaml placed"] = ["sharding={kind: table_wise, tier: dram}"]
CASES["quickstart.yaml mixed"] = [
    "sharding={kind: mixture, default: {kind: row_wise, tier: dram, owners: drawn}, rules: "
    "[{tables: [cat_0, medium*], sharding: {kind: table_wise, tier: hbm}}, "
    "{tables: [tiny*], sharding: {kind: data_parallel}}]}"
]

Data = dict[str, Any]


def renamed(data: Data) -> Data:
    """Give each table another name, in such an order as the old names were not."""
    tables, known = data["workload"]["tables"], {}
    for number, table in enumerate(tables):
        known[table["name"]] = f"{chr(122 - number % 26)}{number}"
    keys = [data["workload"]["keys"], *(table.get("keys") or {} for table in tables)]
    if any(one.get("kind") == "recorded" for one in keys):  # a column of a log is found by a table's name
        return data
    for rule in data["sharding"].get("rules", []):
        rule["tables"] = [_pattern(name, known) for name in rule["tables"]]
    for table in tables:
        table["name"] = known[table["name"]]
    return data


def _pattern(pattern: str, known: dict[str, str]) -> str:
    """Return a pattern of one table, or of all copies of one, with the new name."""
    return known.get(pattern) or known[pattern.removesuffix("*")] + "*"


def permuted(data: Data) -> Data:
    data["workload"]["tables"].reverse()
    return data


def as_read(data: Data) -> Data:
    """The resolved scenario: every quantity in its base unit, all defaults written out."""
    return data


def unfolded(data: Data) -> Data:
    data["run"]["fold"] = "off"
    return data


CHANGES: dict[str, Callable[[Data], Data]] = {
    one.__name__: one for one in (renamed, permuted, spelled_out, as_read, unfolded)
}


def case(name: str) -> Scenario:
    file = name.split()[0]
    short = [] if file in OWN_LENGTH else SHORT
    return load(shipped_folder() / file, [*short, *CASES[name]])


def told(scenario: Scenario, engine: str) -> Iterator[tuple[str, Any]]:
    """Yield what a report says in numbers, but for how it was computed."""
    run = run_scenario(scenario, engine)
    report = json.loads(json.dumps(make_report(run).to_dict()))
    for field, value in report.items():
        if field not in ("scenario", "fidelity", "events", "extrapolated", "interval_ms", "notes"):
            yield field, value


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.nightly) if one in OWN_LENGTH else one for one in CASES]
)
def test_names_order_units_and_folding_change_no_number_of_a_report(name: str) -> None:
    scenario = case(name)
    engine = "vector" if scenario.cluster.ranks > 64 else "events"
    wanted = dict(told(scenario, engine))
    busy = pytest.approx(wanted.pop("busy_share"), rel=1e-12)  # ranks of a host are added up one by one
    for what, change in CHANGES.items():
        if what == "unfolded" and scenario.cluster.ranks > 64:
            continue
        data = change(json.loads(json.dumps(scenario.resolved())))
        other = Scenario.of(replace(scenario.document, data=data))
        found = dict(told(other, engine))
        assert found.pop("busy_share") == busy, what
        assert found == wanted, what


@pytest.mark.parametrize("name", [one for one in CASES if one not in OWN_LENGTH])
def test_both_engines_give_the_same_nanoseconds_where_nothing_is_shared(name: str) -> None:
    scenario = case(name).with_overrides(["run.contention=false"])
    first, second = (run_scenario(scenario, engine).report.step_ms for engine in ("events", "vector"))
    assert first == second


def test_the_name_of_a_table_does_not_decide_which_owners_are_hot() -> None:
    hot = [DRAWN, "workload.tables=[{name: NAME, rows: 1000, dimension: 128, pooling: 30}]", *SHORT]
    steps = {
        name: load(shipped_folder() / "quickstart.yaml", [one.replace("NAME", name) for one in hot])
        for name in ("a", "b", "another")
    }
    assert len({run_scenario(one).report.step_ms["mean"] for one in steps.values()}) == 1


def test_tables_that_differ_keep_their_hot_owners_when_others_change_in_size_alone() -> None:
    """The draws go by place in an order by size, so that scaling a table reseeds nothing."""
    tables = "workload.tables=[{name: a, rows: 1000, dimension: 128}, {name: b, rows: ROWS, dimension: 128}]"
    loads = []
    for rows in (50_000, 60_000):
        settings = [DRAWN, tables.replace("ROWS", str(rows)), *SHORT]
        flows = load(shipped_folder() / "quickstart.yaml", settings).step.traffic.flows
        loads.append(next(flow.requests for flow in flows if flow.piece.table.name == "a"))
    assert (loads[0] == loads[1]).all()
