"""The operations of training against the plain way to write them down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.calibration.measure import kernels

codes = st.lists(st.integers(0, 30), max_size=60)


@given(codes)
def test_distinct_values_are_sorted_and_every_code_finds_its_own(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    found = kernels.distinct(array)
    assert found.values.tolist() == sorted(set(values))
    np.testing.assert_array_equal(found.values[found.place], array)
    assert found.starts[0] == 0 and found.starts[-1] == len(values)


@given(codes.filter(bool))
def test_a_segment_sum_adds_the_rows_of_each_value(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    rows = np.random.default_rng(0).random((len(values), 4)).astype(np.float32)
    into = kernels.distinct(array)
    plain = np.zeros((len(into.values), 4))
    np.add.at(plain, into.place, rows)
    np.testing.assert_allclose(kernels.segment_sum(rows, into), plain, rtol=1e-5)


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_shared_values_stand_where_they_are_said_to(now: set[int], before: set[int]) -> None:
    here = np.array(sorted(now), dtype=np.int64)
    there = np.array(sorted(before), dtype=np.int64)
    places, others = kernels.shared(here, there)
    assert here[places].tolist() == sorted(now & before) == there[others].tolist()


def test_the_gradient_of_the_network_is_that_of_finite_differences() -> None:
    network = kernels.Mlp.seeded((5, 4, 3, 1), 1)
    network.parameters = network.parameters.astype(np.float64)
    random = np.random.default_rng(2)
    inputs, labels = random.random((6, 5)), (random.random((6, 1)) < 0.5).astype(np.float64)

    def loss(parameters: np.ndarray) -> float:
        return kernels.logistic(kernels.Mlp(network.widths, parameters).forward(inputs)[-1], labels)[0]

    values = network.forward(inputs)
    _, slope = kernels.logistic(values[-1], labels)
    gradient = np.zeros_like(network.parameters)
    network.backward(values, slope / 6, gradient)
    for place in range(0, len(gradient), 7):
        step = np.zeros_like(gradient)
        step[place] = 1e-6
        numeric = (loss(network.parameters + step) - loss(network.parameters - step)) / 2e-6
        assert gradient[place] == pytest.approx(numeric, abs=1e-6)


def test_the_gradient_of_the_inputs_is_that_of_finite_differences() -> None:
    network = kernels.Mlp.seeded((3, 4, 1), 5)
    network.parameters = network.parameters.astype(np.float64)
    inputs, labels = np.random.default_rng(1).random((1, 3)), np.ones((1, 1))
    values = network.forward(inputs)
    _, slope = kernels.logistic(values[-1], labels)
    back = network.backward(values, slope, np.zeros_like(network.parameters))
    for place in range(3):
        step = np.eye(3)[place][None] * 1e-6
        high = kernels.logistic(network.forward(inputs + step)[-1], labels)[0]
        low = kernels.logistic(network.forward(inputs - step)[-1], labels)[0]
        assert back[0, place] == pytest.approx((high - low) / 2e-6, abs=1e-6)


def test_adagrad_takes_shorter_steps_where_much_has_been_seen() -> None:
    rows, state = np.zeros((2, 1), np.float32), np.array([[0.0], [99.0]], np.float32)
    kernels.adagrad(rows, state, np.ones((2, 1), np.float32), 1.0)
    assert rows[:, 0].tolist() == pytest.approx([-1.0, -0.1], rel=1e-4)
