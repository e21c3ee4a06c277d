"""Fits of measured primitives: parameters come back within their intervals, errors are those held out."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.calibration.fit_catalog import document, fit_table, read_fits
from simulator.calibration.fit_forms import Affine, Interpolated, Segmented
from simulator.calibration.fit_series import FittedSeries, fit_all, fit_series, held_out
from simulator.calibration.fit_table import Series, read_series, series_of
from simulator.costs import CostModel
from simulator.errors import InputError
from simulator.quantities import AllToAllWork, DenseWork
from simulator.scenario import load

SIZES = np.geomspace(1e3, 1e8, 16)


def line(start_up: float, rate: float, noise: float = 0.0, seed: int = 0, name: str = "copy") -> Series:
    random = np.random.default_rng(seed)
    factors = np.exp(random.normal(0, noise, len(SIZES)))
    times = (start_up + SIZES / rate) * factors
    return series_of(name, [({"bytes": size}, time) for size, time in zip(SIZES, times, strict=True)])


def inside(fitted: FittedSeries, **truth: float) -> list[bool]:
    return [fitted.intervals[name][0] <= value <= fitted.intervals[name][1] for name, value in truth.items()]


@settings(max_examples=examples(25))
@given(st.floats(-6, -4), st.floats(8, 11))
def test_a_line_without_noise_comes_back_exactly(start_up: float, rate: float) -> None:
    fitted = fit_series(line(10**start_up, 10**rate), Affine(), resamples=4)
    assert fitted.values["start_up"] == pytest.approx(10**start_up, rel=1e-4)
    assert fitted.values["bytes"] == pytest.approx(10**rate, rel=1e-4)
    assert fitted.held_out.p90 < 1e-3


def test_true_parameters_lie_within_their_intervals_about_as_often_as_stated() -> None:
    random = np.random.default_rng(11)
    hits = []
    for seed in range(25):
        start_up, rate = 10 ** random.uniform(-5.5, -4), 10 ** random.uniform(9, 10.5)
        series = line(start_up, rate, noise=0.03, seed=seed, name=f"copy{seed}")
        hits += inside(fit_series(series, Affine(), resamples=60), start_up=start_up, bytes=rate)
    assert 0.65 <= np.mean(hits) <= 0.95  # 80 % are stated; 50 draws


def test_rates_of_the_simulator_come_back_from_what_it_makes(checkout: Path) -> None:
    """Products, passes and exchanges as the simulator times them, with noise, tell its own rates again."""
    costs = load(checkout / "scenarios" / "quickstart.yaml").costs
    chip = costs.cluster.accelerator
    flops, traffic = chip.peak("fp16") * chip.matrix_efficiency, chip.hbm_bandwidth * chip.memory_efficiency
    bare = costs.seconds(AllToAllWork(2e9)) - costs.seconds(AllToAllWork(1e9))
    hits = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        made = [_dense(costs, *amounts, random) for amounts in _amounts(random)]
        hits += inside(fit_series(series_of(f"dense{seed}", made), Affine(), 60), flops=flops, bytes=traffic)
        exchange = [_exchange(costs, float(size), random) for size in SIZES]
        hits += inside(fit_series(series_of(f"a2a{seed}", exchange), Affine(), 60), bytes=1e9 / float(bare))
    assert 0.6 <= np.mean(hits) <= 0.99  # 80 % are stated; 24 draws


def _amounts(random: np.random.Generator) -> list[tuple[float, float]]:
    flops, traffic = 10 ** random.uniform(8, 12, 40), 10 ** random.uniform(5, 9, 40)
    return list(zip(flops.tolist(), traffic.tolist(), strict=True))


def _dense(
    costs: CostModel, flops: float, traffic: float, random: np.random.Generator
) -> tuple[dict[str, float], float]:
    work = DenseWork(flops=flops, memory_bytes=traffic, kernels=1, precision="fp16")
    return {"flops": flops, "bytes": traffic}, float(costs.seconds(work)) * float(
        np.exp(random.normal(0, 0.02))
    )


def _exchange(costs: CostModel, size: float, random: np.random.Generator) -> tuple[dict[str, float], float]:
    return {"bytes": size}, float(costs.seconds(AllToAllWork(size))) * float(np.exp(random.normal(0, 0.02)))


def bent(size: float) -> float:
    return 1e-6 + size * 1e-9 * (1.0 if size < 1e6 else 4.0)


def test_segments_follow_a_bend_that_a_line_misses() -> None:
    sizes = np.geomspace(1e4, 1e8, 40)
    series = series_of("gather", [({"rows": float(size)}, bent(float(size))) for size in sizes])
    errors = {one.form.name: one.held_out.median for one in fit_all(series, resamples=4)}
    assert errors["segments"] < errors["affine"] / 2
    assert fit_all(series, resamples=4)[0].form.name in ("segments", "interpolated")


def test_held_out_errors_are_those_of_points_that_the_fit_did_not_see() -> None:
    series = line(1e-5, 1e9, noise=0.05, seed=3)
    out = held_out(series, Affine())
    seen = fit_series(series, Affine(), resamples=4)
    assert out.rows == len(SIZES) and out.median > seen.residual
    exact = fit_series(series, Interpolated())
    assert exact.residual == pytest.approx(0, abs=1e-9) and exact.held_out.median > 0.02


def test_one_wild_measurement_does_not_move_the_fit() -> None:
    series = line(1e-5, 1e9)
    spoiled = series.with_seconds(series.seconds * np.where(np.arange(len(SIZES)) == 9, 20.0, 1.0))
    fitted = fit_series(spoiled, Affine(), resamples=4)
    assert fitted.values["bytes"] == pytest.approx(1e9, rel=0.05)
    assert fitted.values["start_up"] == pytest.approx(1e-5, rel=0.05)


def test_a_part_that_cannot_be_seen_is_said_to_be_at_its_bound() -> None:
    series = series_of("free", [({"bytes": size}, size / 1e9) for size in SIZES.tolist()])
    assert fit_series(series, Affine(), resamples=4).at_bound == ("start_up",)


def test_the_same_measurements_give_the_same_intervals() -> None:
    series = line(1e-5, 1e9, noise=0.05)
    first, second = (fit_series(series, form, resamples=20) for form in (Affine(), Affine()))
    assert first.intervals == second.intervals and first.values == second.values


def test_segments_go_through_their_knots() -> None:
    series = series_of(
        "g", [({"rows": float(size)}, bent(float(size))) for size in np.geomspace(1e3, 1e8, 40)]
    )
    fitted = fit_series(series, Segmented(), resamples=4)
    knots = Segmented().knots(series)
    assert fitted.seconds({"rows": knots}) == pytest.approx(np.array(list(fitted.values.values())))
    with pytest.raises(InputError, match="is fitted by rows"):
        fitted.seconds({"bytes": knots})


def test_a_catalog_file_gives_the_same_times_and_says_what_lies_outside() -> None:
    series = (line(1e-5, 1e9, 0.02), series_of("g", [({"rows": s}, bent(s)) for s in SIZES.tolist()]))
    fits = fit_table(series, resamples=10)
    text = document(fits)
    for one in fits:
        read = read_fits(text)[one.series.name]
        (name,) = one.series.amounts
        at = {name: np.array([2e3, 5e6])}
        assert [read.seconds(**{name: value}) for value in (2e3, 5e6)] == pytest.approx(
            one.best.seconds(at), rel=1e-4
        )
        assert read.outside(**{name: 5e6}) == [] and read.outside(**{name: 5e9}) == [name]
    entry = text.split("copy:")[1]
    for word in ("value", "interval", "source", "confidence", "date", "range", "held_out"):
        assert f"{word}:" in entry


def test_curves_of_measure_lists_of_measurements_and_csv_say_the_same(tmp_path: Path) -> None:
    points = [{"size": size, "seconds": 1e-6 + size / 1e9} for size in SIZES.tolist()]
    curve = {"operation": "copy", "unit": "bytes", "context": 0.0, "shape": [], "points": points}
    rows = [
        {"primitive": "copy", "parameters": {"bytes": p["size"]}, "seconds": p["seconds"]} for p in points
    ]
    (tmp_path / "a.json").write_text(
        json.dumps({"environment": {"date": "2026-11-29"}, "primitives": [curve]})
    )
    (tmp_path / "b.json").write_text(json.dumps({"measurements": rows}))
    lines = "".join(f"copy,{p['size']!r},,{p['seconds']!r}\n" for p in points)
    (tmp_path / "c.csv").write_text("primitive,bytes,rows,seconds\n" + lines)
    found = [read_series(tmp_path / name)[0] for name in ("a.json", "b.json", "c.csv")]
    assert [one.name for one in found] == ["copy"] * 3 and found[0].date == "2026-11-29"
    for one in found[1:]:
        assert np.array_equal(one.seconds, found[0].seconds)
        assert np.array_equal(one.amounts["bytes"], found[0].amounts["bytes"])


def test_what_was_held_fixed_belongs_to_the_name_or_to_the_entry(tmp_path: Path) -> None:
    points = [{"size": size, "seconds": size / 1e9} for size in (1.0, 2.0, 3.0, 4.0)]
    curves = [{"operation": "gather", "unit": "rows", "context": 2000.0, "shape": [32], "points": points}]
    (tmp_path / "a.json").write_text(json.dumps({"primitives": curves}))
    assert read_series(tmp_path / "a.json")[0].name == "gather_2000_32"
    fixed = series_of("rpc", [({"bytes": size, "servers": 2.0}, size) for size in (1.0, 2.0, 3.0, 4.0)])
    assert dict(fixed.fixed) == {"servers": 2.0} and list(fixed.amounts) == ["bytes"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"measurements": [{"primitive": "a", "parameters": {"b": 1}, "seconds": -1}]}',
            "finite and above 0",
        ),
        (
            '{"measurements": [{"primitive": "a", "parameters": {"b": 1}, "seconds": 1}]}',
            "no primitive has 4",
        ),
        ('{"measurements": 3}', "no list of measurements or primitives"),
        ("primitive,bytes,seconds\ncopy,x,1\n", 'c.csv:2: bytes: a positive number is needed, not "x"'),
        ("primitive,bytes,seconds\ncopy,1\n", "primitive and seconds are needed"),
        ("bytes\n1\n", "no column primitive, seconds"),
    ],
)
def test_tables_that_cannot_be_fitted_are_refused_in_one_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_series(path)


def test_many_repeats_of_one_size_do_not_stop_a_fit() -> None:
    """More than a third of the rows at one size: the knots of the segments lie apart all the same."""
    sizes = [*SIZES.tolist(), *[1e3] * 20]
    series = series_of("copy", [({"bytes": size}, 1e-5 + size / 1e9) for size in sizes])
    assert len(set(Segmented().knots(series).tolist())) == 4
    assert fit_all(series, resamples=4)[0].held_out.median < 0.01


def test_intervals_of_points_are_as_wide_as_neighbours_miss_them() -> None:
    """Neither Student's law of one error, nor the parameters, widens what was seen directly."""
    series = series_of("g", [({"rows": s}, bent(s)) for s in np.geomspace(1e3, 1e8, 24).tolist()])
    noisy = series.with_seconds(
        series.seconds * np.exp(np.random.default_rng(5).normal(0, 0.05, len(series.seconds)))
    )
    fitted = fit_series(noisy, Interpolated())
    widths = [np.log(high / low) for low, high in fitted.intervals.values()]
    assert 0.1 < np.median(widths) < 0.25  # 80 % of normal misses of 5 to 6 % lie within +-7 %
    hits = inside(fitted, **{name: bent(float(name[3:])) for name in fitted.values})
    assert 0.7 <= np.mean(hits) <= 1.0


def test_the_error_held_out_of_the_best_form_is_not_the_one_it_was_chosen_by() -> None:
    series = line(1e-5, 1e9, noise=0.2, seed=8)
    best, *others = fit_all(series, resamples=4)
    assert best.held_out.median >= min(held_out(series, one.form).median for one in (best, *others))
    assert best.held_out.rows == len(SIZES)


def row(**changed: object) -> str:
    one = {"primitive": "a", "parameters": {"b": 1}, "seconds": 1, **changed}
    return json.dumps({"measurements": [{"primitive": "a", "parameters": {"b": 1}, "seconds": 2}, one]})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (row(seconds=1e-13), r"measurements\[1\]: seconds: 1e-13 lies outside of 1e-12 to 1e\+06 s"),
        (row(seconds=2e6), r"measurements\[1\]: seconds: 2e\+06 lies outside"),
        (row(parameters={"b": 2e18}), r"measurements\[1\]: b: 2e\+18 lies outside of 1e-18 to 1e\+18"),
        (row(parameters={"b": 1e-300}), r"measurements\[1\]: b: 1e-300 lies outside"),
        (row(parameters={"b": 10**400}), r"measurements\[1\]: needs .* finite"),
        (row(parameters={"b": 10**4000}), r"measurements\[1\]: needs .* finite"),
        ("primitive,b,seconds\na,1,1\na,1,1e-300\n", "c.csv:3: seconds: 1e-300 lies outside"),
        ("primitive,b,seconds\na,1,1e300\n", r"c.csv:2: seconds: 1e\+300 lies outside"),
        ("primitive,b,seconds\na,1e300,1\n", r"c.csv:2: b: 1e\+300 lies outside"),
        (row(unit="ms"), r'measurements\[1\]: "unit" is unknown'),
        ('{"unit": "ms", "measurements": []}', '"unit" is unknown'),
        ('{"primitives": [{"operation": "a", "unit": "b", "points": [], "scale": 2}]}', '"scale" is unknown'),
        (
            '{"primitives": [{"operation": "a", "unit": "b", "points": [{"size": 1, "ms": 1}]}]}',
            r'primitives\[0\]: "ms" is unknown',
        ),
    ],
)
def test_numbers_and_keys_beyond_what_is_known_are_refused_with_their_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_series(path)
