"""Recognising how a text file is laid out: its delimiter, its header, and what its columns hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.workload.keys.reading import EventColumns

CRITEO_INTEGERS = tuple(f"I{place}" for place in range(1, 14))
CRITEO_KEYS = tuple(f"C{place}" for place in range(1, 27))
CRITEO_NAMES = ("label", *CRITEO_INTEGERS, *CRITEO_KEYS)
INTEGER, HEX = re.compile(r"-?\d*"), re.compile(r"([0-9a-f]{8})?")

AVAZU = {"id", "click", "hour", "site_id", "app_id", "device_id"}
AVAZU_NOT_KEYS = {"id", "click", "hour"}

EVENT_NAMES = ("user", "item", "rating", "time")
USERS = ("user", "user_id", "userid", "session", "session_id")
ITEMS = ("item", "item_id", "itemid", "video_id", "movieid", "movie_id", "aid")
TIMES = ("time", "timestamp", "time_ms", "ts", "ts_ms")


@dataclass(frozen=True)
class TextFormat:
    """What the user said of a text file; `delimiter` None and `header` True leave it to the file."""

    delimiter: str | None = None
    header: bool = True


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out; `names` are its columns where the file itself does not say."""

    delimiter: str
    header: bool
    names: tuple[str, ...] | None = None

    @property
    def single_delimiter(self) -> str:
        """Return the delimiter in one character: `::` is turned into tabs before the file is parsed."""
        return "\t" if self.delimiter == "::" else self.delimiter

    def keys(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the key columns of a click log in the layout of Criteo or Avazu, else None."""
        if {*CRITEO_INTEGERS, *CRITEO_KEYS} <= set(names):
            return CRITEO_KEYS
        if set(names) >= AVAZU:
            return tuple(name for name in names if name not in AVAZU_NOT_KEYS)
        return None

    def events(self, names: Sequence[str]) -> EventColumns | None:
        """Return the columns of a log of (user, item, time), as MovieLens and KuaiRand have, else None."""
        user, item, time = (_first(names, known) for known in (USERS, ITEMS, TIMES))
        return EventColumns(user, item, time) if user and item and time else None


def _first(names: Sequence[str], known: Sequence[str]) -> str | None:
    return next((name for name in names if name.lower() in known), None)


def layout_of(start: bytes, path: Path, said: TextFormat) -> Layout:
    """Return the layout of the text that begins with `start`.

    The user's word goes first; then the shape of Criteo's logs (a label that may be missing, 13
    whole numbers, 26 keys of 8 hexadecimal digits, tabs, no header), then `::` between fields,
    then tabs in files named .tsv or .tab or in a first line without commas, then commas.
    """
    line = start.split(b"\n", 1)[0].decode("utf-8", "replace").strip("\ufeff\r")
    free = said.delimiter is None
    if free and _is_criteo(line.split("\t")):
        return Layout("\t", False, CRITEO_NAMES[-1 - line.count("\t") :])
    if free and line.count("::") >= 2:
        return _double_colon(line.split("::"))
    return Layout(said.delimiter or _delimiter(line, path), said.header)


def _is_criteo(fields: list[str]) -> bool:
    if len(fields) not in (39, 40):
        return False
    numbers, keys = fields[-39:-26], fields[-26:]
    return all(map(INTEGER.fullmatch, numbers)) and all(map(HEX.fullmatch, keys)) and any(keys)


def _double_colon(fields: list[str]) -> Layout:
    if not fields[0].isdigit():
        return Layout("::", True)
    return Layout("::", False, EVENT_NAMES if len(fields) == len(EVENT_NAMES) else None)


def _delimiter(line: str, path: Path) -> str:
    named = {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes}
    return "\t" if named or ("\t" in line and "," not in line) else ","
