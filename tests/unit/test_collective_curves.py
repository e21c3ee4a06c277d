"""Curves by size, their tables, the fitter and the catalog file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from simulator.calibration.collective_held_out import every_second_size, larger_scales, median_and_p90
from simulator.calibration.collective_lending import lent
from simulator.calibration.collective_lines import fit_lines, fit_with_intervals
from simulator.calibration.collective_systems import system, systems
from simulator.calibration.collective_tables import OPEN_LICENCES, Setting, Table, read_tables
from simulator.calibration.collectives import fit_collectives, fit_folder
from simulator.costs import curve_catalog
from simulator.costs.curve_catalog import read_curves
from simulator.costs.curves import (
    AlphaBeta,
    Curve,
    LogLog,
    Measured,
    Scale,
    Segments,
    algorithm_bandwidth,
    bus_bandwidth,
)
from simulator.costs.growth import law
from simulator.errors import InputError
from simulator.hardware.catalog import CONFIDENCE
from simulator.units import parse_quantity

HEAD = "table_id,group,collective,accel,n_ranks,n_nodes,library,notes,source,path,commit,licence,network\n"
SIZES = 2.0 ** np.arange(10, 31)


# bandwidths


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("broadcast", 1.0),
        ("point_to_point", 1.0),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operation: str, factor: float) -> None:
    assert algorithm_bandwidth(1e9, 0.1) == 1e10
    assert bus_bandwidth(operation, 1e9, 0.1, 8) == pytest.approx(factor * 1e10)


def test_an_unknown_operation_has_no_bus_bandwidth() -> None:
    with pytest.raises(InputError, match='did you mean "all_reduce"'):
        bus_bandwidth("al_reduce", 1e9, 0.1, 8)


# curves by size


def test_segments_take_the_cheapest_line() -> None:
    lines = Segments((AlphaBeta(1e-5, 1e8), AlphaBeta(1e-4, 1e10)))
    assert lines.seconds(np.array([0.0, 1e9])) == pytest.approx([1e-5, 0.1001])


def test_a_log_log_curve_goes_through_its_points_and_straight_between_them() -> None:
    curve = LogLog((1e3, 1e5, 1e7), (1e-5, 1e-4, 1e-2))
    sizes = np.array([1e3, 1e4, 1e5, 1e6, 1e7])
    assert curve.seconds(sizes) == pytest.approx([1e-5, 10**-4.5, 1e-4, 1e-3, 1e-2], rel=1e-12)


def test_a_log_log_curve_is_flat_below_and_goes_on_at_the_last_rate_above() -> None:
    curve = LogLog((1e3, 1e6, 2e6), (1e-5, 1e-3, 2e-3))
    assert curve.seconds(np.array([1.0, 4e6])) == pytest.approx([1e-5, 4e-3])


def test_where_time_falls_the_faster_protocol_is_used_from_just_above_the_smaller_size() -> None:
    curve = LogLog((1e3, 1e4, 1e5), (1e-5, 9e-5, 3e-5))
    assert curve.seconds(np.array([1e4, 1.0001e4, 9e4])) == pytest.approx([9e-5, 3e-5, 3e-5])
    assert curve.seconds(np.array([1e4 * (1 + 1e-15)])) == pytest.approx([9e-5])


@pytest.mark.parametrize(
    ("sizes", "times"),
    [((1.0,), (1.0,)), ((2.0, 1.0), (1.0, 1.0)), ((1.0, 2.0), (0.0, 1.0)), ((1.0, 2.0), (1.0,))],
)
def test_points_that_make_no_curve_are_refused(sizes: tuple[float, ...], times: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="a measured curve needs"):
        LogLog(sizes, times)


def one_scale(ranks: int = 8, nodes: int = 2) -> Measured:
    return Measured(Scale(ranks, nodes), AlphaBeta(1e-5, 1e10), 1e3, 1e9)


def test_a_curve_keeps_the_shape_of_the_sizes() -> None:
    curve = Curve("all_to_all", (one_scale(),), law("all_to_all"))
    assert isinstance(curve.seconds(1e6, 16, 4), float)
    found = curve.seconds(np.array([[1e6], [1e7]]), 16, 4)
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 1)
    assert found[0, 0] == curve.seconds(1e6, 16, 4)


def test_a_curve_marks_what_lies_outside_the_measurements() -> None:
    curve = Curve("all_to_all", (one_scale(), one_scale(64, 16)), law("all_to_all"))
    assert not curve.extrapolates(np.array([1e3, 1e9]), 16)
    assert curve.extrapolates(1e6, 128)
    assert curve.extrapolates(1e6, 4)
    assert curve.extrapolates(np.array([1e6, 2e9]), 8)
    assert curve.extrapolates(10.0, 8)


def test_scales_that_are_uneven_or_disordered_are_refused() -> None:
    with pytest.raises(InputError, match="10 ranks cannot be spread evenly over 4 nodes"):
        Scale(10, 4)
    with pytest.raises(InputError, match="must rise"):
        Curve("all_to_all", (one_scale(64, 16), one_scale()), law("all_to_all"))


# tables


def written(folder: Path, heads: str, rows: str) -> Path:
    (folder / "tables.csv").write_text(HEAD + heads, encoding="utf-8")
    (folder / "rows.csv").write_text("table_id,size_bytes,time_us,wrong\n" + rows, encoding="utf-8")
    return folder


ONE = "t1,here_2n,alltoall,X,8,2,NCCL2.18,env=tuned,some/repository,run/2024-04-29/x,abcdef123,MIT,ib\n"


def test_a_table_is_read_with_its_cluster_setting_source_and_date(tmp_path: Path) -> None:
    (table,) = read_tables(written(tmp_path, ONE, "t1,2048,20,0\nt1,1024,10,0\nt1,4096,99,7\nt1,0,1,0\n"))
    assert (table.cluster, table.operation, table.scale) == ("here", "all_to_all", Scale(8, 2))
    assert table.setting == Setting("NCCL2.18", "tuned")
    assert (table.sizes, table.times) == ((1024.0, 2048.0), (1e-5, 2e-5))
    assert (table.source, table.date) == ("some/repository (abcdef1, licence: MIT)", "2024-04-29")
    assert table.open_licence


@pytest.mark.parametrize(
    ("group", "ranks", "cluster"),
    [
        ("alcf_polaris_128n", 512, "alcf_polaris"),
        ("clusterA_10n4g", 40, "clusterA"),
        ("oci_GB200_16n", 64, "oci_GB200"),
        ("h100_ib400_2n_a", 16, "h100_ib400_a"),
        ("xla_h100_8g", 8, "xla_h100"),
        ("cw_gb200_72", 72, "cw_gb200"),
        ("16n", 16, "16n"),
    ],
)
def test_the_cluster_is_the_group_without_its_scale(
    tmp_path: Path, group: str, ranks: int, cluster: str
) -> None:
    head = f"t1,{group},all_reduce,X,{ranks},1,,,,,,,\n"
    assert read_tables(written(tmp_path, head, "t1,1,1,\nt1,2,2,\n"))[0].cluster == cluster


@pytest.mark.parametrize(
    ("heads", "rows", "message"),
    [
        (ONE, "t2,1,1,0\n", 'rows.csv:2: tables.csv has no table "t2"'),
        (ONE, "t1,x,1,0\n", 'rows.csv:2: size_bytes: a positive number is needed, not "x"'),
        (ONE, "t1,1,1,0\nt1,2,-3,0\n", 'rows.csv:3: time_us: a positive number is needed, not "-3"'),
        (ONE, "t1,1,nan,0\n", 'time_us: a positive number is needed, not "nan"'),
        (ONE, "t1,1\n", 'time_us: a positive number is needed, not ""'),
        (ONE.replace("alltoall", "allsum"), "t1,1,1,0\n", 'tables.csv:2: collective: "allsum" is unknown'),
        (ONE.replace(",8,2,", ",9,2,"), "t1,1,1,0\n", "9 ranks cannot be spread evenly over 2 nodes"),
        (ONE.replace(",8,2,", ",8,two,"), "t1,1,1,0\n", 'n_nodes: a positive number is needed, not "two"'),
        (ONE.replace(",8,2,", ",8.5,2,"), "t1,1,1,0\n", 'n_ranks: a whole number is needed, not "8.5"'),
        (ONE + ONE, "t1,1,1,0\n", 'tables.csv:3: table_id: "t1" is given twice'),
        (ONE, "t1,1,1,0\n", "no table has two sizes or more"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(tmp_path: Path, heads: str, rows: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read_tables(written(tmp_path, heads, rows))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_column_or_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tables\.csv: cannot be read"):
        fit_folder(tmp_path)
    written(tmp_path, ONE, "")
    (tmp_path / "rows.csv").write_text("table_id,time_us\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"rows\.csv:1: the table has no column size_bytes"):
        read_tables(tmp_path)
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        read_tables(tmp_path)


# fits


def made(nodes: int, environment: str = "a", factor: float = 1.0, operation: str = "all_to_all") -> Table:
    """A direct exchange on hosts of 4: 5 us and a message at 10 GB/s for each peer elsewhere."""
    ranks = 4 * nodes
    times = factor * (ranks - 4) * (5e-6 + SIZES / ranks / 1e10)
    return Table(
        name=f"{environment}{nodes}", cluster="c", setting=Setting("L", environment), operation=operation,
        scale=Scale(ranks, nodes), sizes=tuple(SIZES), times=tuple(times), licence="MIT",
    )  # fmt: skip


def test_lines_that_made_the_points_are_found_again() -> None:
    true = Segments((AlphaBeta(1e-5, 1e8), AlphaBeta(1e-4, 2e9), AlphaBeta(2e-3, 5e10)))
    found = fit_lines(SIZES, true.seconds(SIZES))
    assert [line.latency for line in found.lines] == pytest.approx([1e-5, 1e-4, 2e-3], rel=1e-3)
    assert [line.bandwidth for line in found.lines] == pytest.approx([1e8, 2e9, 5e10], rel=1e-3)


def test_intervals_enclose_the_fit_and_repeat_themselves() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.05, len(SIZES)))
    table = made(2)
    noisy = Table(**(vars(table) | {"times": tuple(np.array(table.times) * noise)}))
    first, again = fit_with_intervals([noisy]), fit_with_intervals([noisy])
    assert first == again
    for line, latency, bandwidth in zip(first.segments.lines, first.latencies, first.bandwidths, strict=True):
        assert latency[0] <= line.latency <= latency[1]
        assert bandwidth[0] <= line.bandwidth <= bandwidth[1]
    assert max(high / low for low, high in first.bandwidths) > 1.01


def test_a_scale_is_borrowed_from_a_setting_that_behaves_alike_and_from_no_other() -> None:
    tables = [made(2), made(2, "b", 1.02), made(64, "b", 1.02), made(2, "c", 4.0), made(128, "c", 4.0)]
    found = system(tables, Setting("L", "a"))
    assert found.borrowed == {Scale(256, 64): Setting("L", "b")}
    assert [one.scale.nodes for one in found.curve.measured] == [2, 64]


def test_a_setting_that_was_never_tested_gets_the_curve_most_like_it() -> None:
    tables = [made(2), made(2, "b", 3.0)]
    found = system(tables, Setting("other library", "b"))
    assert found.curve.seconds(SIZES, 8, 2) == pytest.approx(np.array(tables[1].times))


def test_decay_of_bandwidth_is_found_where_two_scales_were_tested() -> None:
    decayed = made(32, factor=16**0.2)
    (found,) = systems([made(2), decayed])
    assert found.decay == pytest.approx((0.2, 0.2, 0.2), abs=1e-9)
    (single,) = systems([made(2)])
    assert single.decay is None


def test_the_interval_of_a_decay_is_inside_what_its_sizes_say() -> None:
    grown = made(32)
    factors = np.linspace(1.0, 16**0.3, len(grown.times))  # each larger size decays more
    decayed = Table(**(vars(grown) | {"times": tuple(np.array(grown.times) * factors)}))
    (found,) = systems([made(2), decayed])
    assert found.decay is not None
    low, value, high = found.decay
    steepest = np.log(factors[-4:]) / np.log(16)
    assert steepest.min() < low < value < high < steepest.max()


def test_tables_of_several_clusters_are_no_system() -> None:
    with pytest.raises(InputError, match="one cluster and one operation"):
        system([made(2), made(2, operation="all_gather")], Setting("L", "a"))


def test_held_out_sizes_and_scales_of_an_exact_law_are_predicted() -> None:
    tables = [made(2), made(4), made(64)]
    (beyond,) = larger_scales(tables)
    assert (beyond.known_nodes, beyond.table.scale.nodes) == (2, 4)
    assert median_and_p90([beyond])[1] < 0.02
    sizes = list(every_second_size(tables))
    assert [len(case.sizes) for case in sizes] == [10, 10, 10]
    assert 0 < median_and_p90(sizes)[0] < 0.1


def test_nothing_held_out_has_no_error() -> None:
    median, p90, rows = median_and_p90([])
    assert np.isnan(median)
    assert np.isnan(p90)
    assert rows == 0


def test_what_a_fit_writes_is_read_back_as_the_same_curves() -> None:
    tables = [made(2), made(32, factor=1.5), made(2, "b", 1.02)]
    fitted = fit_collectives(tables)
    back = curve_catalog.read_curves(fitted.to_yaml())
    assert list(back) == ["c_l_a_all_to_all", "c_l_b_all_to_all"]
    for one in fitted.fitted:
        for ranks, nodes in ((8, 2), (64, 16), (512, 128)):
            expected = one.system.curve.seconds(SIZES, ranks, nodes)
            assert back[one.system.name].seconds(SIZES, ranks, nodes) == pytest.approx(expected, rel=2e-3)


def test_points_without_an_open_licence_are_not_passed_on() -> None:
    closed = Table(**(vars(made(2)) | {"licence": "none-stated"}))
    fitted = fit_collectives([closed, made(2, "b")])
    entries = yaml.safe_load(fitted.to_yaml(shipped=True))["entries"]
    assert ["points" in entries[name]["scales"][0] for name in sorted(entries)] == [False, True]
    assert "points" in yaml.safe_load(fitted.to_yaml())["entries"]["c_l_a_all_to_all"]["scales"][0]


def test_the_rows_of_a_fit_say_what_was_found() -> None:
    noisy = Table(**(vars(made(8)) | {"name": "wild", "noise_only": True}))
    fitted = fit_collectives([made(2), made(4), noisy])
    (row,) = fitted.rows()
    assert (row["operation"], row["nodes"], row["tables"], row["borrowed_nodes"]) == (
        "all_to_all",
        [2, 4],
        2,
        [],
    )
    assert row["scales_median_error"] < 0.02
    assert fitted.left_out == ("wild",)
    with pytest.raises(InputError, match="nothing to fit"):
        fit_collectives([noisy])


# the catalog file


def numbers(data: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every latency, bandwidth and decay with the place where it stands."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("latency", "bandwidth", "decay"):
                yield f"{where}.{key}", value
            else:
                yield from numbers(value, f"{where}.{key}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from numbers(value, f"{where}[{index}]")


@pytest.fixture(scope="module")
def shipped(checkout: Path) -> dict[str, Any]:
    text = (checkout / "simulator/hardware/catalog/collectives.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


DIMENSIONS = {"latency": "time", "bandwidth": "bandwidth", "decay": "fraction"}


def test_every_shipped_number_has_a_unit_an_interval_a_source_and_a_confidence(
    shipped: dict[str, Any],
) -> None:
    found = list(numbers(shipped["entries"]))
    assert len(found) > 100
    for where, number in found:
        assert set(number) == {"value", "interval", "source", "confidence"}, where
        assert number["confidence"] in CONFIDENCE, where
        assert len(number["source"].split()) + number["source"].count("/") >= 3, where
        dimension = DIMENSIONS[where.rsplit(".", 1)[1]]
        low, value, high = (parse_quantity(end, dimension) for end in (
            number["interval"][0], number["value"], number["interval"][1]))  # fmt: skip
        assert low <= value <= high, where


def test_every_shipped_scale_says_what_was_tested_and_when(shipped: dict[str, Any]) -> None:
    for name, entry in shipped["entries"].items():
        for scale in entry["scales"]:
            least, most = (parse_quantity(end, "bytes") for end in scale["range"])
            assert 0 < least < most, name
            assert scale["date"], name


def test_only_measurements_with_an_open_licence_are_shipped(shipped: dict[str, Any]) -> None:
    points = [
        scale["points"] for one in shipped["entries"].values() for scale in one["scales"] if "points" in scale
    ]
    assert points
    for block in points:
        assert any(f"licence: {licence})" in block["source"] for licence in OPEN_LICENCES)


def test_every_shipped_curve_answers() -> None:
    for name in curve_catalog.names():
        curve = curve_catalog.curve(name)
        scale = curve.measured[-1].scale
        assert 1e-6 < curve.seconds(2.0**26, scale.ranks, scale.nodes) < 10


def test_an_unknown_curve_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean"):
        curve_catalog.curve("alps_nccl2_23_4_aws_ofi_1_13_0_baseline_all_reduc")


ONE_SCALE = (
    "entries: {{x: {{operation: all_reduce, scales: "
    "[{{ranks: 8, nodes: {nodes}, range: [{least}, 2 B], lines: []}}]}}}}"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not a catalog"),
        ("entries: 3", "is not a catalog"),
        ("entries: {x: {operation: all_reduce}}", "entries.x: scales is missing"),
        (ONE_SCALE.format(nodes=3, least="1 B"), "entries.x: 8 ranks cannot be spread evenly"),
        (ONE_SCALE.format(nodes=2, least="1"), "entries.x: needs a unit"),
    ],
)
def test_a_catalog_text_in_another_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        curve_catalog.read_curves(text, "mine.yaml")
    assert str(refused.value).startswith("mine.yaml: ")
    assert message in str(refused.value)


def hosts(cluster: str, nodes: int, **told: object) -> Table:
    """Return a table of `cluster` with cards of 10 GB/s for each of four ranks per host."""
    defaults = {"cluster": cluster, "card_rate": 1e10, "network": "Ether(1x80G)", "name": f"{cluster}{nodes}"}
    return Table(**(vars(made(nodes, operation="all_reduce")) | defaults | told))


class TestLending:
    """A cluster tested inside hosts only is lent the network of another."""

    INSIDE = hosts("own", 1, times=tuple(1e-6 + SIZES / 1e12))

    def test_the_network_comes_from_the_hosts_most_alike(self) -> None:
        others = [hosts("near", 2), hosts("far", 2, card_rate=3e10), hosts("farthest", 2, card_rate=9e11)]
        assert {one.lender for one in lent([self.INSIDE], others)} == {"near (L a)"}
        assert {one.lender for one in lent([self.INSIDE], others[1:])} == {"far (L a)"}
        assert lent([self.INSIDE], others[2:]) == ()

    def test_sizes_are_scaled_by_the_rate_of_the_cards_and_times_are_not(self) -> None:
        twice = hosts("fast", 2, card_rate=2e10)
        (found,) = lent([self.INSIDE], [twice])
        assert found.sizes == pytest.approx(SIZES / 2)
        assert found.times == twice.times
        assert (found.cluster, found.scale, found.card_rate) == ("own", Scale(8, 2), 1e10)

    def test_the_fastest_setting_of_the_lender_lends(self) -> None:
        slow = hosts(
            "near", 2, setting=Setting("L", "untuned"), times=tuple(3 * t for t in hosts("x", 2).times)
        )
        assert {one.lender for one in lent([self.INSIDE], [slow, hosts("near", 2)])} == {"near (L a)"}

    def test_hosts_that_share_a_fast_domain_lend_nothing(self) -> None:
        domain = hosts("rack", 2, times=tuple(1e-6 + SIZES / 1e12))
        assert lent([self.INSIDE], [domain]) == ()

    def test_nothing_is_lent_to_a_tested_network_or_to_unknown_cards(self) -> None:
        assert lent([self.INSIDE, hosts("own", 2)], [hosts("near", 2)]) == ()
        unknown = Table(**(vars(self.INSIDE) | {"card_rate": None}))
        assert lent([unknown], [hosts("near", 2)]) == ()
        assert lent([unknown], [hosts("near", 2)], card_rate=1e10) != ()

    def test_what_is_lent_is_marked_in_the_catalog_and_counts_as_extrapolated(self) -> None:
        fit = fit_collectives([self.INSIDE, hosts("near", 2)])
        text = fit.to_yaml()
        assert "lender: near (L a)" in text
        curve = read_curves(text)["own_l_a_all_reduce"]
        assert [one.lender for one in curve.measured] == ["", "near (L a)"]
        assert curve.seconds(SIZES, 8, 2) == pytest.approx(np.array(hosts("near", 2).times), rel=1e-3)
        assert not curve.extrapolates(1e6, 4)
        assert curve.extrapolates(1e6, 8)

    def test_a_held_out_table_says_who_lent_its_network(self) -> None:
        cases = {
            case.table.cluster: case
            for case in larger_scales([self.INSIDE, hosts("own", 2), hosts("near", 2)])
        }
        assert cases["own"].lender == "near (L a)"
        assert median_and_p90([cases["own"]])[1] < 1e-6
