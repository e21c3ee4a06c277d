"""The law of matrix products: its limits, its waste, and what is learned beside it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from simulator.calibration.gemm_fit import fit_tables
from simulator.calibration.gemm_table import GemmTable, shapes_of
from simulator.costs.dense import Roofline
from simulator.costs.gemm import GemmTime, Residual, Shapes, TileLaw
from simulator.costs.gemm_catalog import devices, gemm_time, measured_law
from simulator.costs.kernels import Kernels
from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.quantities import DenseWork
from simulator.workload.dense.products import MatrixProduct, as_array

LAW = TileLaw(rate=1e15, bandwidth=1e12, start_up=5e-6, units=100, quantisation=1.0, sharpness=10.0)
FAST = replace(LAW, bandwidth=1e16)  # whose memory never binds
GRID = [
    (m, n, k, b) for m in (256, 1024, 4096) for n in (256, 1024, 4096) for k in (256, 4096) for b in (1, 4)
]


def products(*rows: Sequence[float]) -> Shapes:
    return Shapes.of(np.array(rows, dtype=float), 2.0, 2.0)


def test_a_large_product_of_whole_waves_runs_at_the_rate() -> None:
    shape = products((12800, 12800, 65536, 1))  # 100 x 100 tiles on 100 units
    assert LAW.busy(shape)[0] == pytest.approx(shape.flops[0] / LAW.rate, rel=1e-6)


def test_a_flat_product_runs_at_the_bandwidth() -> None:
    shape = products((12800, 128, 16, 1))
    assert LAW.busy(shape)[0] == pytest.approx(shape.bytes[0] / LAW.bandwidth, rel=1e-3)


def test_one_tile_more_than_a_wave_costs_a_whole_wave() -> None:
    full, more = (FAST.busy(products((128 * tiles, 128, 4000, 1)))[0] for tiles in (100, 101))
    assert more == pytest.approx(2 * full, rel=0.05)


def test_a_deep_product_is_split_over_idle_units() -> None:
    """As the gradient of a weight is: few tiles, as deep as the batch."""
    shape = products((512, 256, 65536, 1))  # 8 tiles, 16 parts each
    unsplit = 8 / LAW.units
    assert shape.flops[0] / FAST.rate / FAST.busy(shape)[0] > 5 * unsplit


def test_narrow_products_take_narrow_tiles() -> None:
    wide, narrow = (FAST.busy(products((27, n, 128, 100_000)))[0] for n in (128, 27))
    assert narrow < wide / 2


@pytest.mark.parametrize(
    "change", [{"rate": 0}, {"start_up": -1e-6}, {"quantisation": 1.5}, {"sharpness": 0.5}, {"units": 0}]
)
def test_an_impossible_law_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError):
        replace(LAW, **change)


def test_what_was_learned_holds_inside_the_box_alone() -> None:
    points = np.log2(np.array([(256, 256, 256, 1), (1024, 1024, 1024, 4)], dtype=float))
    time = GemmTime(LAW, Residual(points, np.array([0.5, 0.5]), reach=2.0))
    inside, outside = products((512, 512, 512, 2)), products((512, 512, 4096, 2))
    assert time.busy(inside)[0] > 1.05 * LAW.busy(inside)[0]
    assert time.busy(outside)[0] == LAW.busy(outside)[0]
    assert (time.extrapolates(inside)[0], time.extrapolates(outside)[0]) == (False, True)


def test_a_fit_finds_the_law_that_made_the_times() -> None:
    shapes = shapes_of("bf16xbf16->bf16", np.array(GRID, dtype=float))
    made = replace(LAW, rate=9e14, units=132, quantisation=0.3, sharpness=2.0)
    table = GemmTable(
        "H100-SXM", "bf16xbf16->bf16", np.array(GRID, dtype=float), made.start_up + made.busy(shapes)
    )
    law = fit_tables([table])["H100-SXM"]["bf16xbf16->bf16"].law
    assert law.rate == pytest.approx(made.rate, rel=0.02)
    assert law.bandwidth == pytest.approx(made.bandwidth, rel=0.05)
    assert law.start_up == pytest.approx(made.start_up, rel=0.02)
    assert law.quantisation == pytest.approx(made.quantisation, abs=0.02)


def test_every_measured_device_of_the_catalog_has_a_law_below_its_peak() -> None:
    assert set(devices()) >= {"H100-SXM", "B200"}
    for name, precision in (("h100", "bf16"), ("h100", "tf32"), ("b200", "bf16"), ("gb200", "fp16")):
        chip = catalog.accelerator(name)
        assert 0.5 * chip.peak(precision) < gemm_time(chip, precision).law.rate < chip.peak(precision)


def test_a_device_that_was_not_measured_gets_its_law_from_its_nominal_rates() -> None:
    chip = catalog.accelerator("a100_80")
    time = gemm_time(chip, "fp16")
    assert time.residual is None
    assert measured_law("A100", "f16xf16->f16") is None
    assert time.law.bandwidth == chip.hbm_bandwidth * chip.memory_efficiency
    assert 0.7 * chip.peak("fp16") < time.law.rate < chip.peak("fp16")


def test_a_measured_device_with_other_nominal_rates_is_as_much_slower() -> None:
    chip, shape = catalog.accelerator("h100"), products((2048, 4096, 1024, 1))
    peaks = {name: rate / 2 for name, rate in chip.peak_flops.items()}
    half = replace(chip, peak_flops=peaks, hbm_bandwidth=chip.hbm_bandwidth / 2)
    slow, fast = (gemm_time(one, "bf16").busy(shape)[0] for one in (half, chip))
    assert slow == pytest.approx(2 * fast)


@pytest.mark.parametrize(
    ("name", "measured", "faster", "wider"),
    [("h200", "h100", 1.0, 4800 / 3350), ("gb200", "b200", 2500 / 2250, 1.0)],
)
def test_a_sibling_of_a_measured_device_is_faster_by_its_peak_and_its_bandwidth(
    name: str, measured: str, faster: float, wider: float
) -> None:
    found, known = (gemm_time(catalog.accelerator(one), "bf16") for one in (name, measured))
    assert found.law.rate == pytest.approx(known.law.rate * faster)
    assert found.law.bandwidth == pytest.approx(known.law.bandwidth * wider)
    assert found.law.start_up == known.law.start_up and found.residual is known.residual


def test_products_in_an_unknown_format_are_refused_with_those_that_are_known() -> None:
    chip = catalog.accelerator("h100")
    chip = replace(chip, peak_flops={**chip.peak_flops, "posit16": 1e15})
    work = DenseWork(1e12, precision="posit16", products=as_array([MatrixProduct(8192, 4096, 1024)]))
    with pytest.raises(InputError, match=r'"posit16" \(known: fp32, tf32, fp16, bf16, fp8, int8\)'):
        Kernels().seconds(work, chip)


def test_a_device_without_known_units_wastes_no_wave() -> None:
    chip = replace(catalog.accelerator("a100_80"), name="made up")
    law = gemm_time(chip, "fp16").law
    assert (law.quantisation, law.rate) == (0.0, chip.peak("fp16") * chip.matrix_efficiency)


def test_kernels_without_products_run_at_the_roofline() -> None:
    chip, work = catalog.accelerator("a100_80"), DenseWork(1e12, 1e9, 10, "fp16")
    assert Kernels().seconds(work, chip) == pytest.approx(Roofline().seconds(work, chip))


def test_kernels_time_products_by_shape_and_the_rest_as_attention() -> None:
    chip, product = catalog.accelerator("h100"), MatrixProduct(8192, 4096, 1024)
    alone = DenseWork(product.flops, precision="bf16", products=as_array([product]))
    fused = replace(alone, flops=2 * product.flops)
    more = Kernels().seconds(fused, chip) - Kernels().seconds(alone, chip)
    assert more == pytest.approx(product.flops / (0.35 * chip.peak("bf16")))
    assert Kernels().seconds(alone, chip) < product.flops / (0.6 * chip.peak("bf16"))


def test_the_gradients_of_a_product_have_its_flops_each() -> None:
    product = MatrixProduct(1, 512, 256).of(4096)
    assert product.flops == 2 * 4096 * 512 * 256
    assert [one.flops for one in product.backward] == [product.flops] * 2
    stacked = MatrixProduct(27, 27, 128, stacked=True).of(10)
    assert (stacked.rows, stacked.batch) == (27, 10)


def test_unknown_number_formats_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="bf16xbf16->f32"):
        shapes_of("posit16", np.ones((1, 4)))
