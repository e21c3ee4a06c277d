"""Dense models against counts made by hand and against published figures."""

from dataclasses import replace
from typing import Any

import pytest

from simulator.errors import InputError
from simulator.workload.dense import Dcnv2, DeepFm, DenseModel, Dlrm, Fuxi, Hstu, Mlp, Profile, WideAndDeep

# TurboGR (arXiv 2605.13433), Ascend 910B1. Peak rate and device count are our assumption; the paper's
# throughput and utilisation rows fit them.
PEAK, DEVICES = 376e12, 32

MLPERF_TOP = (1024, 1024, 512, 256, 1)
MLPERF = Dcnv2(13, 26, 128, (512, 256, 128), MLPERF_TOP, cross_layers=3, rank=512)
DLRM = Dlrm(13, 26, 128, (512, 256, 128), MLPERF_TOP)
DEEP_FM = DeepFm(13, 26, 48, (400, 1))
WIDE = WideAndDeep(13, 26, 48, (400, 1))
HSTU = Hstu(layers=16, dimension=1024, sequence=2048, causal=False)
FUXI = Fuxi(layers=16, dimension=1024, sequence=2048, causal=False)
NEST = Hstu(layers=8, dimension=512, sequence=2048, recompute="layer", causal=True)
ALL_MODELS = [Mlp(13, (512, 256)), DLRM, MLPERF, HSTU, FUXI, NEST, WIDE, DEEP_FM]


def _training_flops(model: DenseModel) -> float:
    counted = model.quantities()
    return counted.forward_flops + counted.backward_flops


def _published_flops(utilisation: float, samples_per_second: float) -> float:
    return utilisation * PEAK * DEVICES / samples_per_second


# Perceptron and interaction models, counted by hand; exact.


def test_a_perceptron_has_its_weights_and_biases_and_two_flops_per_weight() -> None:
    counted = Mlp(13, (512, 256)).quantities()
    weights = 13 * 512 + 512 * 256
    assert counted.parameters == weights + 512 + 256
    assert counted.forward_flops == 2 * weights
    assert counted.backward_flops == 4 * weights


def test_a_perceptron_keeps_every_input_and_its_last_output() -> None:
    assert Mlp(13, (512, 256)).quantities().activation_bytes == 2 * (13 + 512 + 256)


def test_a_perceptron_passes_twice_forward_and_four_times_backward_over_its_outputs() -> None:
    counted = Mlp(13, (512, 256)).quantities()
    assert counted.forward_memory_bytes == 2 * 2 * (512 + 256)
    assert counted.backward_memory_bytes == 2 * 4 * (512 + 256)
    assert counted.kernels == 4


def test_the_mlperf_dcnv2_has_the_parameters_counted_by_hand() -> None:
    bottom = (13 * 512 + 512) + (512 * 256 + 256) + (256 * 128 + 128)
    cross = 3 * (2 * 3456 * 512 + 3456)
    top = (3456 * 1024 + 1024) + (1024 * 1024 + 1024) + (1024 * 512 + 512) + (512 * 256 + 256) + (256 + 1)
    assert (bottom, cross, top) == (171_392, 10_627_200, 5_245_953)
    assert MLPERF.quantities().parameters == bottom + cross + top == 16_044_545


def test_the_mlperf_dcnv2_has_the_flops_counted_by_hand() -> None:
    bottom, cross, top = 170_496, 3 * 2 * 3456 * 512, 5_243_136
    assert MLPERF.quantities().forward_flops == 2 * (bottom + cross + top) == 32_060_928
    assert MLPERF.quantities().backward_flops == 2 * 32_060_928


def test_a_cross_layer_makes_ten_element_wise_passes_over_the_joined_width() -> None:
    one_more = replace(MLPERF, cross_layers=4).quantities()
    base = MLPERF.quantities()
    forward = one_more.forward_memory_bytes - base.forward_memory_bytes
    backward = one_more.backward_memory_bytes - base.backward_memory_bytes
    assert (forward, backward) == (4 * 3456 * 2, 6 * 3456 * 2)


def test_a_cross_layer_keeps_its_input_its_inner_product_and_the_factor_of_x0() -> None:
    one_more = replace(MLPERF, cross_layers=4).quantities().activation_bytes
    assert one_more - MLPERF.quantities().activation_bytes == 2 * (2 * 3456 + 512)


def test_most_element_wise_traffic_of_dcnv2_is_in_its_cross_layers() -> None:
    counted = MLPERF.quantities()
    cross = 3 * 10 * 3456 * 2
    assert 0.7 < cross / (counted.forward_memory_bytes + counted.backward_memory_bytes) < 0.9


def test_the_top_of_dlrm_sees_the_lower_triangle_and_the_bottom_output() -> None:
    inputs = 27 * 26 // 2 + 128
    assert inputs == 479
    top = (inputs * 1024 + 1024) + (1024 * 1024 + 1024) + (1024 * 512 + 512) + (512 * 256 + 256) + (256 + 1)
    assert DLRM.quantities().parameters == 171_392 + top == 2_368_897


def test_the_interaction_of_dlrm_multiplies_the_full_square_of_vectors() -> None:
    top = 479 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256
    assert DLRM.quantities().forward_flops == 2 * (170_496 + top + 27 * 27 * 128)


def test_dlrm_joins_vectors_and_moves_the_triangle_through_memory() -> None:
    counted, width = DLRM.quantities(), 27 * 128
    outputs = (512 + 256 + 128) + sum(MLPERF_TOP)
    assert counted.forward_memory_bytes == 2 * (2 * outputs + 2 * width + 2 * 479)
    assert counted.backward_memory_bytes == 2 * (4 * outputs + 2 * width + 479 + 27 * 27 + 128 + 3 * 128)


def test_the_wide_part_adds_one_weight_per_dense_input_and_a_bias() -> None:
    inputs = 13 + 26 * 48
    deep = inputs * 400 + 400 + 400 + 1
    assert WIDE.quantities().parameters == deep + 13 + 1
    assert WIDE.quantities().forward_flops == 2 * (inputs * 400 + 400 + 13)


def test_the_pairs_of_deep_fm_cost_memory_traffic_but_no_matrix_product_and_no_parameter() -> None:
    pairs, wide = DEEP_FM.quantities(), WIDE.quantities()
    assert (pairs.forward_flops, pairs.parameters) == (wide.forward_flops, wide.parameters)
    # One more logit in the sum, every embedding read, summed vector and logit written.
    assert pairs.forward_memory_bytes - wide.forward_memory_bytes == 2 * (1 + 26 * 48 + 48 + 1)
    assert pairs.activation_bytes - wide.activation_bytes == 2 * 48


def test_wide_and_deep_works_without_dense_inputs() -> None:
    without = replace(WIDE, dense_features=0).quantities()
    assert without.parameters == WIDE.quantities().parameters - 13 * 401
    assert without.kernels == WIDE.quantities().kernels - 1


# HSTU and FuXi-alpha against TurboGR.


def test_hstu_large_has_the_published_84_million_parameters() -> None:
    assert HSTU.quantities().parameters == 16 * 5 * 1024**2
    assert HSTU.quantities().parameters == pytest.approx(84e6, rel=0.002)


@pytest.mark.parametrize("sequence", [512, 2048, 4096])
def test_hstu_makes_ten_d_squared_and_four_l_d_flops_per_position_and_layer(sequence: int) -> None:
    counted = replace(HSTU, sequence=sequence).quantities()
    assert counted.forward_flops == 16 * sequence * (10 * 1024**2 + 4 * sequence * 1024)


@pytest.mark.parametrize(
    ("sequence", "flops", "utilisation", "samples_per_second"),
    [(2048, 1.855e12, 0.2474, 1616.83), (4096, 5.36e12, 0.3408, 770.79)],
)
def test_hstu_agrees_with_the_published_utilisation_within_one_percent(
    sequence: int, flops: float, utilisation: float, samples_per_second: float
) -> None:
    counted = _training_flops(replace(HSTU, sequence=sequence))
    assert counted == pytest.approx(flops, rel=0.001)
    assert counted == pytest.approx(_published_flops(utilisation, samples_per_second), rel=0.01)


def test_fuxi_large_has_the_published_201_million_parameters() -> None:
    assert FUXI.quantities().parameters == 16 * 12 * 1024**2
    assert FUXI.quantities().parameters == pytest.approx(201.6e6, rel=0.002)


@pytest.mark.parametrize("sequence", [512, 2048, 4096])
def test_fuxi_makes_24_d_squared_and_eight_l_d_flops_per_position_and_layer(sequence: int) -> None:
    counted = replace(FUXI, sequence=sequence).quantities()
    assert counted.forward_flops == 16 * sequence * (24 * 1024**2 + 8 * sequence * 1024)


@pytest.mark.parametrize(("sequence", "samples", "published"), [(2048, 2, 8.25e12), (4096, 1, 11.54e12)])
def test_fuxi_agrees_with_the_published_flops_per_step_within_a_tenth_of_a_percent(
    sequence: int, samples: int, published: float
) -> None:
    assert samples * _training_flops(replace(FUXI, sequence=sequence)) == pytest.approx(published, rel=0.001)


@pytest.mark.parametrize(
    ("sequence", "utilisation", "samples_per_second"), [(2048, 0.3934, 1156.26), (4096, 0.5471, 574.39)]
)
def test_fuxi_agrees_with_the_published_utilisation_within_one_percent(
    sequence: int, utilisation: float, samples_per_second: float
) -> None:
    counted = _training_flops(replace(FUXI, sequence=sequence))
    assert counted == pytest.approx(_published_flops(utilisation, samples_per_second), rel=0.01)


def test_a_wider_feed_forward_network_adds_three_matrices_of_the_extra_width() -> None:
    wider = replace(FUXI, hidden=2048).quantities().parameters
    assert wider - FUXI.quantities().parameters == 16 * 3 * 1024 * 1024


@pytest.mark.parametrize(("model", "attention"), [(HSTU, 4), (FUXI, 8)])
def test_a_causal_kernel_does_half_of_the_attention_products(model: Hstu | Fuxi, attention: int) -> None:
    saved = model.quantities().forward_flops - replace(model, causal=True).quantities().forward_flops
    assert saved == 16 * 2048 * (attention * 2048 * 1024) / 2


def test_the_notes_say_how_attention_was_counted() -> None:
    assert "causal half" in NEST.quantities().notes[0]
    assert "in full" in HSTU.quantities().notes[0]


def test_heads_change_nothing_because_their_widths_add_up_to_the_dimension() -> None:
    assert replace(HSTU, heads=8).quantities() == HSTU.quantities()


# Element-wise passes and memory of the sequence models, in multiples of d per position and layer.


def test_hstu_makes_18_element_wise_passes_forward_and_26_backward() -> None:
    counted, unit = HSTU.quantities(), 16 * 2048 * 1024 * 2
    # Norm 2, SiLU 8, norm 2, gate 3, residual 3; backward 3, 12, 3, 5, 3.
    assert counted.forward_memory_bytes == 18 * unit
    assert counted.backward_memory_bytes == 26 * unit
    assert counted.kernels == 16 * (3 + 5)


def test_fuxi_makes_40_element_wise_passes_forward_and_59_backward() -> None:
    counted, unit = FUXI.quantities(), 16 * 2048 * 1024 * 2
    # Norm 2, SiLU 12, norm 6, gate 9, residual 3, norm 2, gated branch 3, residual 3.
    assert counted.forward_memory_bytes == 40 * unit
    # Backward: 3, 18, 9, 15, 3, 3, 5, 3.
    assert counted.backward_memory_bytes == 59 * unit


def test_hstu_keeps_13_tensors_and_fuxi_28_per_layer() -> None:
    unit = 16 * 2048 * 1024 * 2
    assert HSTU.quantities().activation_bytes == 13 * unit
    assert FUXI.quantities().activation_bytes == 28 * unit


def test_recomputing_layers_costs_one_more_forward_pass() -> None:
    counted = NEST.quantities()
    kept = replace(NEST, recompute="none").quantities()
    assert counted.backward_flops == 3 * counted.forward_flops
    assert counted.backward_memory_bytes == kept.backward_memory_bytes + kept.forward_memory_bytes
    assert counted.activation_bytes == 8 * 2048 * 512 * 2


def test_a_batch_of_512_in_eight_hstu_layers_takes_about_1_70_s_at_a_quarter_of_peak() -> None:
    batch = 512 * _training_flops(NEST)
    assert batch == pytest.approx(4 * 512 * NEST.quantities().forward_flops)
    assert batch == pytest.approx(1.585e14, rel=0.002)
    assert batch / (0.2474 * PEAK) == pytest.approx(1.70, rel=0.005)


def test_512_samples_of_hstu_fit_into_64_gb_only_when_layers_are_recomputed() -> None:
    # Even the least that a backward pass can work from (input, projections before and after SiLU,
    # attention output, gated output: 11 d) does not fit, and we count 13 d.
    least = 512 * 8 * 2048 * 11 * 512 * 2
    kept = 512 * replace(NEST, recompute="none").quantities().activation_bytes
    recomputed = NEST.quantities()
    assert 64e9 < least < kept
    assert 512 * (recomputed.activation_bytes + recomputed.peak_layer_bytes) < 40e9


def test_the_peak_of_a_recomputed_layer_holds_its_activations_and_the_gradients_in_flight() -> None:
    unit = 2048 * 512 * 2
    # 13 d less the stored input; SiLU's gradients (4 + 4) and the bypass gradient (1).
    assert replace(NEST, recompute="none").quantities().peak_layer_bytes == 9 * unit
    assert NEST.quantities().peak_layer_bytes == (12 + 9) * unit


# Every model.


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: type(model).__name__)
def test_single_precision_doubles_the_bytes_and_nothing_else(model: Mlp) -> None:
    half, single = (replace(one.quantities(), bottom=None) for one in (model, replace(model, value_bytes=4)))
    names = ("forward_memory_bytes", "backward_memory_bytes", "activation_bytes", "peak_layer_bytes")
    names += ("fused_forward_bytes", "fused_backward_bytes")
    doubled = replace(half, **{name: 2 * getattr(half, name) for name in names})
    assert single == doubled
    assert half.activation_bytes > 0


def test_a_profile_returns_what_it_was_given_and_a_backward_twice_as_large() -> None:
    counted = Profile(flops=3.0, memory_bytes=5.0, parameters=7.0, activation_bytes=11.0).quantities()
    assert (counted.forward_flops, counted.backward_flops) == (3.0, 6.0)
    assert (counted.forward_memory_bytes, counted.backward_memory_bytes) == (5.0, 10.0)
    assert (counted.parameters, counted.activation_bytes) == (7.0, 11.0)


def test_a_profile_takes_a_measured_backward_pass_even_when_it_is_zero() -> None:
    counted = Profile(3.0, 5.0, 7.0, 11.0, backward_flops=0.0, backward_memory_bytes=1.0).quantities()
    assert (counted.backward_flops, counted.backward_memory_bytes) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("model", "change", "named"),
    [
        (MLPERF, {"dimension": 0}, "dimension"),
        (MLPERF, {"bottom": (512, 64)}, "bottom must end at dimension = 128"),
        (MLPERF, {"rank": -1}, "rank"),
        (MLPERF, {"cross_layers": 0}, "cross_layers"),
        (DLRM, {"top": ()}, "top needs at least one layer"),
        (DLRM, {"bottom": ()}, "bottom needs at least one layer"),
        (DLRM, {"top": (512, 0)}, r"top\[1\]"),
        (WIDE, {"dense_features": -1}, "dense_features"),
        (DEEP_FM, {"layers": ()}, "layers"),
        (DEEP_FM, {"embedding_features": 0}, "embedding_features"),
        (Mlp(1, (1,)), {"inputs": 1.5}, "inputs must be a whole number"),
        (Mlp(1, (1,)), {"value_bytes": 0}, "value_bytes"),
        (HSTU, {"heads": 3}, "heads = 3 does not divide dimension = 1024"),
        (HSTU, {"sequence": 0}, "sequence"),
        (HSTU, {"recompute": "layers"}, 'did you mean "layer"'),
        (FUXI, {"hidden": -1}, "hidden"),
        (FUXI, {"heads": 0}, "heads"),
        (FUXI, {"recompute": "all"}, "all"),
        (Profile(1, 1, 1, 1), {"flops": -1.0}, "flops"),
        (Profile(1, 1, 1, 1), {"backward_flops": float("nan")}, "backward_flops"),
    ],
)
def test_an_impossible_shape_is_refused_by_name(model: Mlp, change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        replace(model, **change)


@pytest.mark.parametrize("value_bytes", [2, 4])
def test_the_bottom_of_a_model_is_its_perceptron_over_dense_features(value_bytes: int) -> None:
    features = {"dense_features": 13, "embedding_features": 26, "dimension": 16}
    shape = {**features, "bottom": (64, 16), "top": (32, 1)}
    alone = Mlp(13, (64, 16), value_bytes).quantities()
    for model in (
        Dlrm(**shape, value_bytes=value_bytes),  # type: ignore[arg-type]
        Dcnv2(**shape, cross_layers=2, rank=8, value_bytes=value_bytes),  # type: ignore[arg-type]
    ):
        whole = model.quantities()
        assert whole.without_rows == alone
        rest = whole.with_rows
        assert rest.forward_flops + alone.forward_flops == whole.forward_flops
        assert rest.backward_memory_bytes + alone.backward_memory_bytes == whole.backward_memory_bytes
        assert rest.parameters + alone.parameters == whole.parameters
        assert rest.kernels + alone.kernels == whole.kernels


def test_models_that_read_rows_from_the_start_have_no_bottom_and_a_profile_has_the_one_it_is_given() -> None:
    none = Mlp(8, (4, 1)).quantities()
    assert none.without_rows.forward_flops == none.without_rows.parameters == 0
    assert none.with_rows.forward_flops == none.forward_flops
    given = Profile(300.0, 30.0, 90.0, 9.0, bottom_share=1 / 3, bottom_parameters=10.0).quantities()
    assert given.without_rows.forward_flops == pytest.approx(100)
    assert given.without_rows.backward_flops == pytest.approx(200)
    assert given.with_rows.parameters == 80
    with pytest.raises(InputError, match="bottom of a model cannot be more than all of it"):
        Profile(1.0, 1.0, 1.0, 1.0, bottom_share=0.5, bottom_parameters=2.0)
