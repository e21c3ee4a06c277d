"""What a real run asks of measured primitives: their plain sum, and sizes that were not measured."""

from collections.abc import Iterator

from simulator.calibration.local.costs import Wire, split
from simulator.calibration.local.predicting import LocalMachine
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.step import Primitive

SLACK = 1e-9  # sizes that differ by less, relatively, are one


def primitives_sum_ms(machine: LocalMachine, settings: Settings) -> float:
    """Return the sum of all measured primitives that a batch of a real run is made of, ms.

    Each takes what it took alone; a stage that runs every so many batches counts that share. Raises
    InputError for a primitive that was not measured.
    """
    costs = machine.costs(settings)
    seconds = sum(
        float(costs.seconds(part)) / stage.every
        for stage, work in machine.works(settings)
        for part in split(work)
    )
    return seconds * 1e3


def beyond(machine: LocalMachine, settings: Settings) -> tuple[str, ...]:
    """Return, once for each operation, that a size lies outside of all sizes that were measured of it.

    Raises InputError for an operation that was not measured.
    """
    asked = _asked(machine, settings)
    outside = {name: size for name, size, least, most in asked if _is_out(size, least, most)}
    return tuple(f"{name} of size {size:.4g} is outside of its grid" for name, size in outside.items())


def _is_out(size: float, least: float, most: float) -> bool:
    return 0.0 < size < least * (1 - SLACK) or size > most * (1 + SLACK)


def _asked(machine: LocalMachine, settings: Settings) -> Iterator[tuple[str, float, float, float]]:
    """Yield each operation of a run with its size, and the least and the largest that were measured."""
    costs = machine.costs(settings)
    for _, work in machine.works(settings):
        for part in split(work):
            name, size = _operation(part)
            if name:
                curves = machine.curves.of_operation(name, costs.shape_of(name))
                ends = [(curve.sizes[0], curve.sizes[-1]) for curve in curves]
                yield name, size, min(end[0] for end in ends), max(end[1] for end in ends)


def _operation(work: object) -> tuple[str, float]:
    if isinstance(work, Primitive):
        return work.name, work.size
    return (work.operation, work.size) if isinstance(work, Wire) else ("", 0.0)
