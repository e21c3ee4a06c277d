"""How results are held against each other: speed-up and scaling efficiency, defined once."""


def speed_up(step_ms: float | None, reference_ms: float | None) -> float | None:
    """Return how many steps are done in the time of one of the reference; None where a time is not known.

    It says what a policy is worth only where both do the same job: same model, batch, workers and engine.
    """
    return None if step_ms is None or reference_ms is None else reference_ms / step_ms


def efficiency(throughput: float, workers: float, fewest_throughput: float, fewest: float) -> float:
    """Return samples/s per worker over that on the fewest workers; 1 where nothing is lost by growing."""
    return (throughput / workers) / (fewest_throughput / fewest)
