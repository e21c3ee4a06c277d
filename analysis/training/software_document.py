"""The catalog file `software.yaml`, written from fits: each number with its interval, range, date and source.

`python -m analysis.training.software_document FOLDER` writes it from the tables in FOLDER, in the checkout.
It takes two passes: how wide bands are, and what the two-stream model needs, follow from predictions with the
values of the first.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from analysis.training.fitting import Fit, fit, runs
from analysis.training.parameters import GATHERS, OVERHEADS, SHARED, Fitted
from analysis.training.peer_fit import Factor, two_stream_factors
from analysis.training.profiles import PROFILES, Profile
from analysis.training.rows import Measured, Row
from analysis.training.spread import KINDS, Width, widths
from analysis.training.tables import read_training
from simulator.quantities.statistics import COVERAGE
from simulator.units import format_time

FILE = Path("simulator/hardware/catalog/software.yaml")
NOT_MLPERF = "not verified by MLCommons Association"
ROUNDS = {"v2.0": "2022-06", "v2.1": "2022-11", "v3.0": "2023-06", "v3.1": "2023-11", "v5.0": "2025-06"}
SPREAD = f"analysis.training.spread: {COVERAGE:.0%} of the errors of cases of the kind that were not fitted"
HEADER = f"""\
# Software profiles: what frameworks add to the work itself. Keys: the `software` part of a scenario. One
# overhead per family and one gather efficiency per family of accelerators, each fitted on the one row that
# its source names (docs/decisions/0007-training-fit-and-predict.md). Not edited by hand: written by
# `python -m analysis.training.software_document FOLDER`. MLPerf rows: {NOT_MLPERF}.
#
# `interval`: what the fastest and the slowest run of that row would give; of rows that print no runs, steps
# 2.9 % shorter and longer, the 90th percentile of the spread of repeated runs. Of `spread`: the middle 80 %
# of those of samples of the cases drawn again. `seen`: the accelerators, hosts and samples per step of the
# fit, or how many configurations. `date`: of the round's results, or of the text that prints the row.
"""
PEERS = """\
# What the two-stream model of analysis.training.peers is multiplied with, for comparison only: fitted on that
# one of our rows with which it misses the other cases of the family by least.
two_stream_factor:
"""


def document(found: Fit, factors: Mapping[str, Factor], spreads: Mapping[str, Mapping[str, Width]]) -> str:
    """Return the text of the file. Raises InputError where an interval ends beyond a parameter's ends."""
    gathers = [f"  {one.family}: {_fitted(one, found)}" for one in GATHERS]
    peers = [f"  {name}: {_factor(one, found)}" for name, one in factors.items()]
    entries = [_entry(name, one, found, spreads[name]) for name, one in PROFILES.items()]
    parts = (
        HEADER,
        "gather_efficiency:\n" + "\n".join(gathers),
        PEERS + "\n".join(peers),
        "entries:\n" + "\n".join(entries),
    )
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _entry(name: str, profile: Profile, found: Fit, spreads: Mapping[str, Width]) -> str:
    lines = [f'note: "{profile.note}"', f"family: {name}"]
    lines += [f"{key}: {value}" for key, value in profile.settings.items()]
    families = (*SHARED.get(name, ()), name)
    lines += [f"{one.field}: {_fitted(one, found)}" for one in OVERHEADS if one.family in families]
    lines += [f"calibrated_on: {_machine(_own(name), found)}", "spread:"]
    lines += [f"  {kind}: {_width(spreads[kind])}" for kind in KINDS]
    return "\n".join((f"  {name}:", *(f"    {line}" for line in lines)))


def _own(family: str) -> Fitted:
    return next(one for one in OVERHEADS if one.family == family)


def _machine(one: Fitted, found: Fit) -> str:
    case = found.case(one.row)
    row, release = case.row, case.framework.release
    named = f', release: "{release}"' if release else ""
    return f"{{accelerator: {case.machine.name}, per_host: {row.per_host}, hosts: {row.hosts}{named}}}"


def _fitted(one: Fitted, found: Fit) -> str:
    value, ends = found.values[one], found.interval(one)
    return _number(_shown(one, value), [_shown(one, end) for end in ends], found.case(one.row).row)


def _shown(one: Fitted, value: float) -> str:
    if one.unit == "s":
        return f'"{format_time(float(f"{value:.4g}"))}"'
    return f'"{value / 1e3:.4g} k/s"' if one.unit == "/s" else f"{value:.4g}"


def _factor(factor: Factor, found: Fit) -> str:
    row = found.case(factor.row).row
    low, high = runs(row)
    return _number(f"{factor.value:.4g}", [f"{factor.value * share:.4g}" for share in (low, high)], row)


def _number(value: str, ends: list[str], row: Row) -> str:
    seen = f"accelerators: {row.accelerators}, hosts: {row.hosts}, samples: {row.batch}"
    told = f"interval: [{', '.join(ends)}], seen: {{{seen}}}, date: {_date(row)}"
    return f'{{value: {value}, {told}, source: "fitted on {_source(row)}", confidence: inferred}}'


def _date(row: Row) -> str:
    return f'"{ROUNDS[row.round]}"' if row.from_mlperf else "not stated"


def _source(row: Row) -> str:
    if row.from_mlperf:
        return f"the MLPerf row {row.case_id} (mlcommons training results, Apache-2.0; {NOT_MLPERF})"
    told = f"{row.words.get('source', '')} {row.words.get('path', '')}, {row.words.get('commit', '')[:7]}"
    return f"{row.case_id} ({told}, {row.words.get('licence', '')})"


def _width(width: Width) -> str:
    ends, seen = f"[{width.low:.3f}, {width.high:.3f}]", f"{{configurations: {width.count}}}"
    told = f"interval: {ends}, seen: {seen}, date: not stated"
    return f'{{value: {width.value:.3f}, {told}, source: "{SPREAD}", confidence: inferred}}'


def write(folder: Path, target: Path = FILE) -> Path:
    """Write the file from the tables in `folder` and return where it is. Raises InputError as `fit` does."""
    measured = read_training(folder)
    found = fit(measured)
    target.write_text(_now(found, measured), encoding="utf-8")
    _forget()
    target.write_text(_now(found, measured), encoding="utf-8")
    return target


def _now(found: Fit, measured: Measured) -> str:
    return document(found, two_stream_factors(measured), widths(measured))


def _forget() -> None:
    """Have the file read anew: it was just written."""
    from simulator.scenario import software_catalog

    software_catalog.forget()


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
