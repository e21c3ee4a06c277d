"""A planning question and its plans in words: target, limits, policies, shardings."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.plan.question import LimitsSpec, TargetSpec
from analysis.times import HOUR_S


def in_words(part: Mapping[str, Any]) -> str:
    """Return a part of a scenario in words, its kind first: `nestpipe, micro_batches 4`."""
    rest = [f"{name} {_value(value)}" for name, value in part.items() if name != "kind"]
    return ", ".join([str(part["kind"])] * ("kind" in part) + rest)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({in_words(value)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def target_in_words(target: TargetSpec) -> str:
    """Return what is to be reached, in one line."""
    return ", ".join((f"{target.samples:,.0f} samples", *_target(target)))


def _target(target: TargetSpec) -> Iterator[str]:
    if target.within is not None:
        yield f"within {target.within / HOUR_S:,.6g} h"
    if target.throughput is not None:
        yield f"at least {target.throughput:,.6g} samples/s"
    if target.budget is not None:
        yield f"for at most {target.budget:,.6g} USD"
    if target.usd_per_million_samples is not None:
        yield f"for at most {target.usd_per_million_samples:,.6g} USD per million samples"
    if target.energy_per_sample is not None:
        yield f"with at most {target.energy_per_sample:,.6g} J per sample"


def limits_in_words(limits: LimitsSpec) -> str:
    """Return what the answer must respect, in one line."""
    steps = limits.staleness_steps
    stale = f"rows at most {steps} step{'s' * (steps > 1)} stale" if steps else "synchronous training only"
    workers = [] if limits.workers is None else [f"at most {limits.workers:,} workers"]
    power = [] if limits.power is None else [f"at most {limits.power:,.6g} W"]
    return ", ".join([stale, *workers, *power])
