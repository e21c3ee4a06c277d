"""From a metric and its unit to the milliseconds of a step."""

import re

TIMES = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1e3),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("us", "usec", "µs", "μs", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("min", "minute", "minutes"), 6e4),
}
_THOUSANDS = {"": 1.0, "k": 1e3, "m": 1e6}
_STEP = re.compile(
    r"(?:(?:median|mean|avg|average|p50)_)?(?:train(?:ing)?_)?(?:step|iteration|iter|batch)_(?:time|latency|duration)"
    r"|(?:time|seconds|ms|milliseconds)_per_(?:step|iteration|iter|batch)"
)
_RATE = re.compile(r"(?:.*_)?(?:throughput|qps)|(?:samples|examples|queries)_per_s(?:ec|econd)?")
_SAMPLES = re.compile(
    r"([km]?) ?(?:samples?|examples?|queries|records)(?:/| per )s(?:ec|econd)?"
    r"( ?(?:/|per) ?(?:gpu|accelerator|device))?"
)
_QUERIES = re.compile(r"([km]?)qps()")
_STEPS = re.compile(r"(?:batches|steps|iterations|iters?|its?)(?:/| per )s(?:ec|econd)?")


def step_ms(metric: str, unit: str, value: float, samples: int, accelerators: int) -> float:
    """Return the ms of a step of `samples` on all `accelerators`, from a time or a rate.

    Raises ValueError, with the reason, for a metric that is none of a whole step, an unknown unit, and
    values that are not positive.
    """
    name, told = re.sub(r"[ -]+", "_", metric.strip().lower()), unit.strip().lower()
    is_step, is_rate = bool(_STEP.fullmatch(name)), bool(_RATE.fullmatch(name))
    if not (is_step or is_rate):
        raise ValueError(f"{metric or 'a metric without a name'} is not the time of a whole step")
    if value <= 0:
        raise ValueError(f"{metric}: a positive number is needed, not {value:g}")
    return value * _time(metric, told) if is_step else _from_rate(metric, told, value, samples, accelerators)


def _time(metric: str, unit: str) -> float:
    if unit not in TIMES:
        raise ValueError(f'{metric}: "{unit}" is no unit of a time that is known here')
    return TIMES[unit]


def _from_rate(metric: str, unit: str, value: float, samples: int, accelerators: int) -> float:
    if _STEPS.fullmatch(unit):
        return 1e3 / value
    found = _SAMPLES.fullmatch(unit) or _QUERIES.fullmatch(unit)
    if found is None:
        raise ValueError(f'{metric}: "{unit}" is no rate of samples that is known here')
    if not samples:
        raise ValueError("the batch is not stated, so a rate says nothing of a step")
    return 1e3 * samples / (value * _THOUSANDS[found.group(1)] * (accelerators if found.group(2) else 1))
