"""What the answer to a planning question rests on: target, prices and powers, and what is left out."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

from analysis.plan.candidates import Space
from analysis.plan.question import HardwareSpec, Question
from analysis.plan.words import limits_in_words, target_in_words
from simulator.hardware import catalog
from simulator.scenario import Scenario
from simulator.scenario.priced import PRICE_OF, unlike_priced

NO_SOFTWARE = "no software is counted: a framework adds time to every step (`software:` in the scenario)"
LEFT_OUT = "start-up, checkpoints and failures are left out: hours are samples over throughput"
NAMEPLATE = "kWh are those of all parts at their full power all the time: more than they draw while they wait"
NO_SERVERS = "parameter servers are not in USD and kWh: add what their hosts cost and draw"


@dataclass(frozen=True)
class Figure:
    """A price or a power of one accelerator; `of` says where it is from, `between` the range of sources."""

    amount: float | None
    of: str
    between: str = ""


@dataclass(frozen=True)
class Rate:
    """What one accelerator of an option costs (USD per hour of use) and draws (W).

    `unlike` says what the cluster has beyond the machine that a price of the catalog is for.
    """

    hardware: str
    usd_per_hour: Figure
    watts: Figure
    unlike: tuple[str, ...] = ()


@dataclass(frozen=True)
class Basis:
    """What was asked, what an hour of each option costs, and what is assumed."""

    target: str
    limits: str
    rates: tuple[Rate, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the basis as plain data."""
        return asdict(self)


def basis(question: Question) -> Basis:
    """Return what the answer to `question` rests on."""
    space = Space(question)
    options = [(option, space.first(option)) for option in question.spec.hardware]
    rates = tuple(_rate(option, scenario) for option, scenario in options)
    unlike = dict.fromkeys(line for rate in rates for line in rate.unlike)
    servers = (NO_SERVERS,) if _served(space, options) else ()
    return Basis(
        target_in_words(question.spec.target),
        limits_in_words(question.spec.limits),
        rates,
        (_software(options), LEFT_OUT, NAMEPLATE, *servers, *unlike),
    )


def _served(space: Space, options: Sequence[tuple[HardwareSpec, Scenario]]) -> bool:
    """Whether some candidate keeps rows on parameter servers."""
    shardings = [scenario.resolved()["sharding"] for _, scenario in options]
    return '"remote"' in json.dumps([*shardings, *space.axes[2]], default=str)


def _rate(option: HardwareSpec, scenario: Scenario) -> Rate:
    money, cluster = option.money, scenario.cluster
    price, power = cluster.price_usd_per_hour, cluster.power_watts
    own = _figure(money.usd_per_hour, "price", option)
    return Rate(
        option.name,
        own or _looked_up(price, "price_usd_per_hour", scenario),
        _figure(money.watts, "power", option) or _looked_up(power, "power_watts", scenario),
        () if own else tuple(unlike_priced(scenario.spec.cluster, cluster.with_workers(max(option.workers)))),
    )


def _figure(own: float | None, name: str, option: HardwareSpec) -> Figure | None:
    """Return what the question itself says."""
    if own is None:
        return None
    return Figure(own, f"money.{name if option.money.ownership is None else 'ownership'} of the question")


def _looked_up(whole: float | None, field: str, scenario: Scenario) -> Figure:
    """Return what the cluster says, per accelerator, with the catalog's source."""
    named = scenario.spec.cluster.accelerator
    if whole is None:
        return Figure(None, "unknown: neither the question nor the catalog has it")
    share = whole / scenario.cluster.ranks
    if scenario.spec.cluster.groups:
        return Figure(share, "the groups of hosts in the cluster, on average")
    if not isinstance(named, str):
        return Figure(share, "the accelerators written out in the cluster")
    entry = catalog.entry("accelerator", named)[field]
    between = " to ".join(map(str, entry.get("range", ())))
    alone = getattr(scenario.cluster.accelerator, field)
    more = "" if isclose(share, alone) else f"; {share - alone:,.4g} of it are its part of the host"
    return Figure(share, f"catalog, {named}: {entry['source']}{more}", between)


def _software(options: Sequence[tuple[HardwareSpec, Scenario]]) -> str:
    """Say whether the overhead of a framework is counted, and for which options."""
    counted = [option.name for option, scenario in options if scenario.spec.software is not None]
    if not counted:
        return NO_SOFTWARE
    if len(counted) == len(options):
        return "the software of the scenario is counted in every step (`software:`)"
    return f"software is counted for {', '.join(counted)} only: the others look faster than they are"


def without_prices(notes: str) -> str:
    """Return a run's notes without what they say of the catalog's prices: a basis says it where it counts."""
    return "; ".join(note for note in notes.split("; ") if not note.startswith(PRICE_OF))
