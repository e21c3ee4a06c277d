"""Tables of measured matrix products: what is read, hidden, fitted, predicted and told."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.gemm_validation import cross_fitted
from simulator.calibration.gemm_devices import units_of
from simulator.calibration.gemm_document import entries, entry_name
from simulator.calibration.gemm_doubt import fit_with_doubts
from simulator.calibration.gemm_fit import at_ends, fit_law
from simulator.calibration.gemm_held_out import largest, masks, other_half, random_half
from simulator.calibration.gemm_table import GemmTable, read_gemm_tables
from simulator.costs.gemm import TileLaw, closeness
from simulator.costs.gemm_catalog import measured_law
from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.units import parse_quantity

HEAD = "device,batch,m,n,k,dtypes,time_us\n"
ROWS = np.array([(m, n, k, 1) for m in (256, 512, 1024) for n in (256, 768) for k in (256, 512, 2048)], float)
GEMM = yaml.safe_load(
    (Path(__file__).parents[2] / "simulator" / "hardware" / "catalog" / "gemm.yaml").read_text("utf-8")
)


def table(device: str, formats: str = "bf16xbf16->bf16", rows: Any = ROWS) -> GemmTable:
    law = TileLaw(6e14, 2e12, 5e-6, 1.0, 0.0, 2.0)
    bare = GemmTable(device, formats, rows, np.ones(len(rows)))
    return GemmTable(device, formats, rows, law.start_up + law.busy(bare.shapes))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "gemm.csv"
    path.write_text(HEAD + "\n".join(lines), encoding="utf-8")
    return path


def test_a_shape_is_hidden_in_all_formats_of_its_device() -> None:
    tables = [table("H100-SXM"), table("H100-SXM", "f32xf32->f32", ROWS[::-1]), table("B200")]
    for split in (random_half(0), other_half(0), largest):
        hidden = [
            {tuple(row) for row in one.rows[mask].tolist()}
            for one, mask in zip(tables, masks(tables, split), strict=True)
        ]
        assert hidden[0] == hidden[1] != set()
    assert not np.any(masks(tables, random_half(0))[0] & masks(tables, other_half(0))[0])


def test_repeats_of_a_shape_are_hidden_together() -> None:
    twice = table("B200", rows=np.concatenate([ROWS, ROWS]))
    (mask,) = masks([twice], random_half(3))
    assert np.array_equal(mask[: len(ROWS)], mask[len(ROWS) :])
    assert mask.sum() == len(ROWS)


def test_a_product_and_its_transpose_are_alike() -> None:
    shape, mirrored, other = np.log2([[[256, 4096, 512, 2]], [[4096, 256, 512, 2]], [[256, 1024, 64, 1]]])
    assert closeness(shape, mirrored, 2.0) == pytest.approx(closeness(shape, shape, 2.0))
    assert closeness(shape, other, 2.0) == pytest.approx(closeness(mirrored, other, 2.0))


@pytest.mark.parametrize(
    ("device", "units"), [("H100-SXM", 132), ("v100", 80), ("H100-PCIe", None), ("", None)]
)
def test_only_whole_names_of_devices_are_known(device: str, units: int | None) -> None:
    assert units_of(device) == units


def test_a_device_whose_units_are_not_known_has_no_quantisation() -> None:
    law = fit_law(table("some GPU"))
    assert (law.quantisation, law.units) == (0.0, 1.0)
    assert law.rate == pytest.approx(6e14, rel=0.02)


def test_rates_of_a_device_of_the_catalog_end_at_what_its_maker_prints() -> None:
    known = table("H100-SXM")
    fast = GemmTable(known.device, known.formats, known.rows, known.seconds / 10)
    law, chip = fit_law(fast), catalog.accelerator("h100")
    assert law.rate <= chip.peak("bf16") * 1.001 and law.bandwidth <= chip.hbm_bandwidth * 1.001
    assert {"rate", "bandwidth"} & set(at_ends(fast, law))


def test_tiny_products_on_a_slow_device_are_fitted() -> None:
    rows = np.array(
        [(m, n, k, b) for m in (8, 16) for n in (8, 16) for k in (8, 16) for b in range(1, 7)], float
    )
    slow = GemmTable("tiny", "bf16xbf16->bf16", rows, np.full(len(rows), 50e-6))
    assert fit_law(slow).start_up == pytest.approx(50e-6, rel=0.05)


def test_rows_of_unknown_formats_and_devices_are_listed_with_the_reason(tmp_path: Path) -> None:
    cases = cross_fitted(
        read_gemm_tables(
            written(tmp_path, "H100-SXM,1,256,256,256,i8xi8->i32,3", "new,1,256,256,256,f16xf16->f16,3")
        )
    )
    assert [(case.role, case.predicted) for case in cases] == [("none", None)] * 2
    assert "widths" in cases[0].note and "fewer than 40 rows" in cases[1].note


def test_a_second_row_of_a_shape_is_listed_whichever_file_it_is_in(tmp_path: Path) -> None:
    line = "H100-SXM,1,300,300,384,bf16xbf16->bf16,"
    tables = read_gemm_tables(written(tmp_path, f"{line}9", f"{line}8"))
    cases = cross_fitted([*tables, *read_gemm_tables(written(tmp_path, f"{line}7"))])
    assert [(case.role, round(case.measured * 1e6)) for case in cases] == [
        ("predict", 9),
        ("none", 8),
        ("none", 7),
    ]
    assert {case.note for case in cases[1:]} == {"a second row of this device, these formats and this shape"}


def test_a_few_shapes_that_the_shipped_law_has_seen_are_of_role_fit() -> None:
    known = measured_law("H100-SXM", "bf16xbf16->bf16")
    assert known is not None and known.residual is not None
    seen = np.round(2 ** known.residual.points[:12])
    cases = cross_fitted([table("H100-SXM", rows=seen)])
    assert {case.role for case in cases} == {"fit"} and len(cases) == 12
    assert all(case.predicted and "learned from" in case.note for case in cases)


def test_predictions_from_half_of_a_table_say_so_and_plain_figures_are_the_makers() -> None:
    rows = np.array([(*row[:3], b) for row in ROWS.tolist() for b in (1, 3, 5)])
    own = cross_fitted([table("own", rows=rows)])
    assert {case.role for case in own} == {"predict"} and all("other half" in case.note for case in own)
    assert {case.plain for case in own} == {None}, "nobody prints the figures of an unknown device"
    (new,) = cross_fitted([table("H100-SXM", rows=np.array([[300.0, 700.0, 384.0, 1.0]]))])
    flops, moved = 2 * 300 * 700 * 384, 2 * (300 * 384 + 700 * 384 + 300 * 700)
    assert new.plain == pytest.approx(flops / 989.4e12 + moved / 3350e9, rel=0.01)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["", "", "H100-SXM,1,256,256,0,bf16xbf16->bf16,3"], "gemm.csv:4: k: a positive number"),
        ([",1,256,256,256,bf16xbf16->bf16,3"], "gemm.csv:2: device is empty"),
        (["B200,1,256,256,256,,3"], "gemm.csv:2: dtypes"),
        (["B200,1,256.5,256,256,bf16xbf16->bf16,3"], "a whole number"),
    ],
)
def test_wrong_rows_are_refused_with_their_line(tmp_path: Path, lines: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_gemm_tables(written(tmp_path, *lines))


def test_what_is_no_file_is_refused_and_a_byte_order_mark_is_borne_with(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="regular file"):
        read_gemm_tables(tmp_path / "pipe.csv")
    marked = written(tmp_path, "B200,1,256,256,256,bf16xbf16->bf16,3")
    marked.write_bytes(b"\xef\xbb\xbf" + marked.read_bytes())
    assert [one.device for one in read_gemm_tables(marked)] == ["B200"]


def test_intervals_and_errors_of_a_fit_are_written_beside_its_numbers() -> None:
    fits = fit_with_doubts([table("own device")], resamples=8)
    written_laws = yaml.safe_load("gemm:\n" + entries(fits))["gemm"]
    assert list(written_laws) == [entry_name("own device")] == ["gemm_own_device"]
    (law,) = written_laws["gemm_own_device"]["formats"].values()
    assert law["held_out"]["rows"] == len(ROWS)
    assert "at_bound" not in law["rate"]


# what is shipped


def shipped_numbers() -> list[Any]:
    laws = [
        (name, formats, raw)
        for name, entry in GEMM["entries"].items()
        for formats, raw in entry["formats"].items()
    ]
    return [
        pytest.param(raw[number], kind, id=f"{name}-{formats}-{number}")
        for name, formats, raw in laws
        for number, kind in (
            ("rate", "rate"),
            ("bandwidth", "bandwidth"),
            ("start_up", "time"),
            ("sharpness", ""),
        )
    ]


@pytest.mark.parametrize(("number", "kind"), shipped_numbers())
def test_every_number_of_a_law_lies_in_its_interval(number: Any, kind: str) -> None:
    low, value, high = (
        parse_quantity(one, kind) if kind else float(one)
        for one in (number["interval"][0], number["value"], number["interval"][1])
    )
    assert low <= value * 1.0001 and value <= high * 1.0001


def test_every_shipped_law_has_a_date_a_range_and_held_out_errors() -> None:
    for entry in GEMM["entries"].values():
        assert entry["date"] and set(entry["range"]) == {"m", "n", "k", "batch"}
        assert all(
            0 < raw["held_out"]["median"] < raw["held_out"]["p90"] for raw in entry["formats"].values()
        )


def test_numbers_at_the_end_of_their_search_are_marked_and_others_where_the_end_would_do_as_well() -> None:
    for entry in GEMM["entries"].values():
        for raw in entry["formats"].values():
            for name, least, most in (("quantisation", 0.0, 1.0), ("sharpness", 1.0, 10.0)):
                marked = raw[name].get("at_bound", False)
                if raw[name]["value"] - least < 1e-3:
                    assert marked, name
                elif marked:
                    assert raw[name]["interval"][1] == most, name


def test_what_is_taken_for_other_devices_follows_from_the_shipped_laws() -> None:
    laws = [GEMM["entries"][f"gemm_{name}"]["formats"]["bf16xbf16->bf16"] for name in ("h100_sxm", "b200")]
    sharp, quantised = ([law[name]["value"] for law in laws] for name in ("sharpness", "quantisation"))
    general = {name: one["value"] for name, one in GEMM["general"].items()}
    rate = parse_quantity(laws[0]["rate"]["value"], "rate")
    assert general["matrix_share"] == pytest.approx(rate / catalog.accelerator("h100").peak("bf16"), rel=1e-3)
    assert general["sharpness"] == pytest.approx((sharp[0] * sharp[1]) ** 0.5, rel=1e-3)
    assert general["quantisation"] == pytest.approx(sum(quantised) / 2, rel=2e-3)


def test_a_bandwidth_that_bound_no_shape_is_marked_and_its_interval_reaches_the_end() -> None:
    """Products of one core: all bound by its rate, so that any larger bandwidth explains them as well."""
    law = TileLaw(1e11, 1e12, 1e-6, 1.0, 0.0, 8.0)
    bare = GemmTable("laptop", "f32xf32->f32", ROWS, np.ones(len(ROWS)))
    measured = GemmTable("laptop", "f32xf32->f32", ROWS, law.start_up + law.busy(bare.shapes))
    (fitted,) = fit_with_doubts([measured], 8)
    assert "bandwidth" in fitted.at_bound and fitted.intervals["bandwidth"][1] == pytest.approx(1e17)
    assert "rate" not in fitted.at_bound and fitted.intervals["rate"][1] < 1.1e11


def test_a_bandwidth_that_binds_is_not_marked() -> None:
    flat = np.array([(m, n, 8, 1) for m in (2048, 4096, 8192) for n in (2048, 4096) for _ in range(2)], float)
    (fitted,) = fit_with_doubts([table("laptop", rows=np.concatenate([ROWS, flat]))], 8)
    assert "bandwidth" not in fitted.at_bound
