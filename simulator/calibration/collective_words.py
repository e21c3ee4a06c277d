"""What the columns of words in a table of collectives say: cards, environment, source, date."""

import re
from collections.abc import Mapping
from math import isfinite


def card_rate(text: str) -> float | None:
    """Return bytes/s from Gb/s per rank; None where the column says nothing that is a rate."""
    try:
        rate = float(text) * 1e9 / 8
    except ValueError:
        return None
    return rate if isfinite(rate) and rate > 0 else None


def environment(notes: str) -> str:
    """Return the environment that notes name, as in `env=tuned`."""
    found = re.search(r"env=([\w.+-]+)", notes)
    return found[1] if found else ""


def source(told: Mapping[str, str]) -> str:
    """Return where the numbers come from, in words that can be looked up."""
    name = re.sub(r"\(.*?\)", "", told["source"]).strip()
    if not name:
        return "the folder of tables that was fitted"
    commit, licence = told["commit"][:7], told["licence"].replace("-stated", " stated")
    return f"{name} ({', '.join(part for part in (commit, f'licence: {licence}') if part)})"


def date(path: str) -> str:
    """Return the date in the name of a file."""
    found = re.search(r"(20\d\d)-?([01]\d)-?([0-3]\d)", path)
    return "-".join(found.groups()) if found else "not stated"
