"""What a scenario may say about collectives, and what the report says back."""

from pathlib import Path
from typing import get_args

import pytest

from simulator.costs.algorithms import AUTO, KNOWN, Choice
from simulator.errors import InputError
from simulator.results.report import StepReport
from simulator.scenario import load, run_scenario
from simulator.scenario.collectives_spec import AlgorithmsSpec

ALGORITHMS = "cluster.collectives.algorithms"
TWO_HOSTS = "cluster.hosts=2"


def report(checkout: Path, *settings: str, file: str = "quickstart.yaml") -> StepReport:
    return run_scenario(load(checkout / "scenarios" / file, list(settings))).report


def algorithms(found: StepReport) -> dict[str, str]:
    return {row["operation"]: row["algorithm"] for row in found.collectives}


def test_the_words_of_a_scenario_are_the_algorithms_that_there_are() -> None:
    for operation, field in AlgorithmsSpec.model_fields.items():
        assert set(get_args(field.annotation)) == {AUTO, *KNOWN[operation]}
        assert field.default == next(iter(KNOWN[operation]))
    assert AlgorithmsSpec().build() == Choice()


def test_the_report_names_the_algorithm_that_was_asked_for(checkout: Path) -> None:
    plain = algorithms(report(checkout, TWO_HOSTS))
    assert plain == {"all_to_all": "direct", "all_reduce": "hierarchical ring"}
    told = [f"{ALGORITHMS}.all_to_all=pairwise", f"{ALGORITHMS}.all_reduce=tree"]
    named = algorithms(report(checkout, TWO_HOSTS, *told))
    assert named == {"all_to_all": "pairwise", "all_reduce": "double binary tree"}


def test_the_automatic_choice_follows_the_size_and_is_named(checkout: Path) -> None:
    settings = [TWO_HOSTS, f"{ALGORITHMS}.all_to_all=auto", "cluster.collectives.per_peer=20 us"]
    rows = report(checkout, *settings).collectives
    chosen = {row["name"]: row["algorithm"] for row in rows if row["operation"] == "all_to_all"}
    assert chosen == {"route": "hierarchical", "exchange": "direct", "send": "direct"}


def test_what_messages_cost_slows_the_step(checkout: Path) -> None:
    ring = f"{ALGORITHMS}.all_reduce=ring"
    within = "cluster.collectives.per_message_within"
    slow, fast = (
        report(checkout, ring, f"{within}={each}").collectives[-1]["algbw_gbps"] for each in ("9 us", "1 us")
    )
    assert fast > slow


def test_a_ring_reports_the_bandwidths_of_nccl_tests(checkout: Path) -> None:
    row = report(checkout, TWO_HOSTS, f"{ALGORITHMS}.all_reduce=ring").collectives[-1]
    assert row["operation"] == "all_reduce"
    assert row["busbw_gbps"] == pytest.approx(row["algbw_gbps"] * 2 * 15 / 16)


def test_an_unknown_algorithm_costs_one_line_with_its_place(checkout: Path) -> None:
    with pytest.raises(InputError) as refused:
        load(checkout / "scenarios/quickstart.yaml", [f"{ALGORITHMS}.all_to_all=pairwize"])
    assert f"{ALGORITHMS}.all_to_all" in str(refused.value)
    assert "pairwise" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_tree_on_a_torus_is_refused_by_name(checkout: Path) -> None:
    torus = "cluster.fabric={kind: torus, dims: [4, 2], link_bandwidth: 50 GB/s, hop_latency: 1 us}"
    with pytest.raises(InputError, match="tree is not known on a torus"):
        report(checkout, torus, f"{ALGORITHMS}.all_reduce=tree")


def test_an_exchange_by_domains_on_a_torus_is_refused_by_name_and_not_chosen(checkout: Path) -> None:
    torus = "cluster.fabric={kind: torus, dims: [4, 2], link_bandwidth: 50 GB/s, hop_latency: 1 us}"
    with pytest.raises(InputError, match="hierarchical is not known on a torus"):
        report(checkout, torus, f"{ALGORITHMS}.all_to_all=hierarchical")
    assert "hierarchical" not in algorithms(report(checkout, torus, f"{ALGORITHMS}.all_to_all=auto"))


CURVES = "cluster.collectives={all_to_all: sb_a100_nccl2_8_2_10_all_to_all}"


@pytest.mark.parametrize(
    ("told", "what"),
    [("per_peer=5 us", "per_peer"), ("algorithms.all_to_all=pairwise", "algorithms.all_to_all")],
)
def test_a_measured_curve_and_what_it_takes_the_place_of_are_refused(
    checkout: Path, told: str, what: str
) -> None:
    quickstart = checkout / "scenarios/quickstart.yaml"
    with pytest.raises(InputError, match=f"takes the place of {what}: leave out one") as refused:
        load(quickstart, [CURVES, f"cluster.collectives.{told}"])
    assert "cluster.collectives" in str(refused.value)
    assert load(quickstart, [CURVES, "cluster.collectives.algorithms.all_reduce=tree"]).costs.curves
    kept = load(quickstart, [CURVES]).resolved()["cluster"]["collectives"]
    assert kept["algorithms"]["all_to_all"] == "direct"  # written out in full, it is read back


def test_a_file_of_curves_of_which_none_is_used_is_refused(checkout: Path) -> None:
    with pytest.raises(InputError, match="no curve of it is named"):
        load(checkout / "scenarios/quickstart.yaml", ["cluster.collectives={file: mine.yaml}"])


def test_the_weight_by_which_collectives_share_is_stated_and_matters(checkout: Path) -> None:
    policy = "policy={kind: dual_buffer, buffers: 2}"
    fabric = "cluster.fabric={kind: two_level, within: 300 GB/s, between: 1 GB/s, latency: 20 us}"
    found = {
        weights: report(checkout, TWO_HOSTS, policy, fabric, f"run.weights={weights}")
        for weights in ("collective", "flow")
    }
    for weights, one in found.items():
        assert f"each {weights} weighing the same" in one.fidelity
    assert found["flow"].interference_ms != found["collective"].interference_ms


def test_without_contention_no_weight_is_told(checkout: Path) -> None:
    assert "weighing" not in report(checkout, "run.contention=false").fidelity


class TestOwnCurves:
    """Curves from a file beside the scenario."""

    CATALOG = """\
entries:
  mine:
    operation: all_reduce
    scales:
      - ranks: 8
        nodes: 1
        range: [8 B, 1 GB]
        lines: [{latency: {value: 7 ms}, bandwidth: {value: 50 GB/s}}]
"""

    def scenario(self, checkout: Path, folder: Path, catalog: str = CATALOG, *settings: str) -> StepReport:
        (folder / "mine.yaml").write_text(catalog, encoding="utf-8")
        text = (checkout / "scenarios/quickstart.yaml").read_text(encoding="utf-8")
        (folder / "quickstart.yaml").write_text(text, encoding="utf-8")
        file = "cluster.collectives.file=mine.yaml"
        return run_scenario(load(folder / "quickstart.yaml", [file, *settings])).report

    def test_they_time_the_collectives_that_name_them(self, checkout: Path, tmp_path: Path) -> None:
        report = self.scenario(checkout, tmp_path, self.CATALOG, "cluster.collectives.all_reduce=mine")
        (row,) = [row for row in report.collectives if row["operation"] == "all_reduce"]
        assert row["algorithm"] == "measured"
        assert row["bytes"] / row["algbw_gbps"] / 1e9 == pytest.approx(7e-3 + row["bytes"] / 50e9)

    @pytest.mark.parametrize(
        ("catalog", "name", "problem"),
        [
            (CATALOG, "mime", r'no measured collective is called "mime" \(did you mean "mine"\?\)'),
            (CATALOG, "h100", "mine.yaml: no measured collective"),
            ("entries: 3\n", "mine", "mine.yaml: is not a catalog of measured collectives"),
            ("entries: {mine: {operation: all_reduce}}\n", "mine", "entries.mine: scales is missing"),
            (CATALOG.replace("7 ms", "7"), "mine", "entries.mine: "),
            (CATALOG.replace("all_reduce", "all_to_all"), "mine", "was measured for all_to_all"),
            ("a: [" * 2000, "mine", "mine.yaml"),
        ],
    )
    def test_what_is_wrong_with_them_is_told_in_one_line(
        self, checkout: Path, tmp_path: Path, catalog: str, name: str, problem: str
    ) -> None:
        with pytest.raises(InputError, match=problem) as refused:
            self.scenario(checkout, tmp_path, catalog, f"cluster.collectives.all_reduce={name}")
        assert "\n" not in str(refused.value)

    def test_files_elsewhere_are_refused(self, checkout: Path, tmp_path: Path) -> None:
        settings = ["cluster.collectives.file=../mine.yaml", "cluster.collectives.all_reduce=mine"]
        with pytest.raises(InputError, match="lies outside the folder"):
            self.scenario(checkout, tmp_path, self.CATALOG, *settings)

    def test_a_fitted_catalog_can_be_named(self, checkout: Path, tmp_path: Path, measured_data: Path) -> None:
        from simulator.calibration.collectives import fit_folder

        text = fit_folder(measured_data / "collectives").to_yaml()
        report = self.scenario(
            checkout, tmp_path, text, "cluster.collectives.all_to_all=sb_a100_nccl2_8_2_10_all_to_all"
        )
        assert {row["algorithm"] for row in report.collectives if row["operation"] == "all_to_all"} == {
            "measured"
        }
