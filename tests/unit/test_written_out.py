"""A part of the catalog written out in a scenario is the part itself: the same objects, the same step."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.cli.running import run
from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.scenario.document import Document
from simulator.scenario.scenario import Scenario
from simulator.scenario.simulate import run_scenario
from simulator.scenario.written_out import written_out

WORKLOAD: dict[str, Any] = {
    "model": {
        "kind": "dlrm",
        "dense_features": 13,
        "embedding_features": 4,
        "dimension": 64,
        "bottom": [256, 64],
        "top": [512, 1],
        "precision": "fp32",
    },
    "tables": [{"name": "t", "rows": 1e6, "dimension": 64, "copies": 4}],
    "keys": {"kind": "zipf", "exponent": 1.05},
    "batch": 2048,
    "input": {"bytes": "256 B", "cpu_time": "1 us"},
}


def scenario(cluster: dict[str, Any], **more: Any) -> Scenario:
    data = {
        "cluster": {"hosts": 2, **cluster},
        "workload": WORKLOAD,
        "sharding": {"kind": "row_wise"},
        "policy": {"kind": "serialized"},
        "run": {"batches": 4, "warm_up": 1, "seed": 1},
        **more,
    }
    return Scenario.of(Document(data, {}, "test"))


def in_precision_of(accelerator: str) -> dict[str, Any]:
    """Return the workload in fp32 where the chip has such a peak rate, else in bf16."""
    known = catalog.accelerator(accelerator).peak_flops
    model = {**WORKLOAD["model"], "precision": "fp32" if "fp32" in known else "bf16"}
    return {**WORKLOAD, "model": model}


def by_name(machine: str) -> dict[str, Any]:
    raw = catalog.entry("machine", machine)
    named = {part: raw[part] for part in ("accelerator", "host", "fabric")}
    return {**named, "per_host": raw["per_host"]["value"]}


def spelled(machine: str) -> dict[str, Any]:
    part = written_out("machine", machine)
    assert part is not None
    return {**part, "hosts": 2}


@pytest.mark.parametrize("machine", catalog.names("machine"))
@pytest.mark.parametrize("compute", ["roofline", "kernels"])
def test_every_machine_written_out_gives_the_step_of_the_named_one(machine: str, compute: str) -> None:
    workload, speed = in_precision_of(by_name(machine)["accelerator"]), {"compute": {"kind": compute}}
    named, written = (scenario({**part(machine), **speed}, workload=workload) for part in (by_name, spelled))
    assert named.cluster == written.cluster
    ends = [run_scenario(one, "vector").timeline.end_ns for one in (named, written)]
    assert (ends[0] == ends[1]).all()


@pytest.mark.parametrize("kind", ["accelerator", "host", "fabric"])
def test_every_part_of_the_catalog_can_be_written_out(kind: str) -> None:
    machine = {
        raw[kind]: name for name in catalog.names("machine") for raw in [catalog.entry("machine", name)]
    }
    for name in catalog.names(kind):
        cluster = {**by_name(machine.get(name, "dgx_h100")), kind: name}
        written = {**cluster, kind: written_out(kind, name)}
        assert scenario(cluster).cluster == scenario(written).cluster, name


def test_an_accelerator_outside_of_matrix_engines_runs_at_its_vector_rate_written_out_too() -> None:
    part = written_out("accelerator", "a100_80")
    assert part is not None
    kernels = {**by_name("dgx_a100"), "compute": {"kind": "kernels"}}
    named, written = scenario(kernels), scenario({**kernels, "accelerator": part})
    slower = scenario({**kernels, "accelerator": {**part, "vector_flops": "1 TFLOP/s"}})
    ends = [run_scenario(one, "vector").timeline.end_ns[-1] for one in (named, written, slower)]
    assert (ends[0] == ends[1]).all() and (ends[0] != ends[2]).any()


@pytest.mark.parametrize("name", catalog.names("software"))
def test_every_software_profile_written_out_gives_the_step_of_the_named_one(name: str) -> None:
    cluster = by_name("dgx_a100")
    named, written = (scenario(cluster, software=one) for one in (name, written_out("software", name)))
    ends = [run_scenario(one, "vector").timeline.end_ns for one in (named, written)]
    assert (ends[0] == ends[1]).all()


def test_measured_laws_of_the_catalog_read_from_a_file_are_the_named_ones(tmp_path: Path) -> None:
    source = Path(catalog.__file__).with_name("collectives.yaml")
    (tmp_path / "curves.yaml").write_bytes(source.read_bytes())
    first: dict[str, str] = {}
    for name in catalog.names("collective"):
        first.setdefault(catalog.entry("collective", name)["operation"], name)
    known = {operation: first[operation] for operation in ("all_to_all", "all_reduce")}
    plain = scenario({**by_name("dgx_a100"), "collectives": known})
    kept = scenario({**by_name("dgx_a100"), "collectives": {**known, "file": "curves.yaml"}})
    data = kept.document.data
    read = Scenario.of(Document(data, {}, str(tmp_path / "scenario.yaml")))
    assert read.costs.curves == plain.costs.curves


def test_the_catalog_shows_what_can_be_pasted_into_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog", "show", "h200"]) == 0
    text = capsys.readouterr().out.split("for the same step:")[1]
    part = yaml.safe_load(text)
    shown = scenario({**by_name("dgx_h200"), **part})
    assert shown.cluster == scenario(by_name("dgx_h200")).cluster
    assert run(["catalog", "show", "dgx_h100", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["written_out"]["machine"]["per_host"] == 8


def test_what_is_only_named_has_no_written_form() -> None:
    assert written_out("collective", catalog.names("collective")[0]) is None
    with pytest.raises(InputError, match="did you mean"):
        written_out("accelerator", "h1000")
