"""`nvidia-smi topo -m`: which accelerators of a host are wired how, as the `cluster` part of a scenario.

The matrix says kinds of ways and numbers of NVLinks, never rates: those are given, or assumed and said
to be.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simulator.calibration.imports.opening import lines
from simulator.errors import InputError, Where
from simulator.units import format_bandwidth

WHAT = "the output of `nvidia-smi topo -m`"
MOST_LINKS = 18  # NVLinks of one accelerator (H100, B200)
ON_SWITCH = ("PIX", "PXB")
KINDS = (*ON_SWITCH, "PHB", "NODE", "SYS", "X")
NVLINK, PCIE = 25e9, 25e9  # bytes/s per direction: one NVLink of V100, A100, H100; PCIe 4.0 x16 in use
MOST_DEVICES = 256
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CARD = re.compile(r"^(NIC\d+|mlx\d+_\d+|hfi\d+_\d+|irdma\w*|bnxt\w*|efa\w*)$")


@dataclass(frozen=True)
class Rates:
    """Bandwidths that no matrix has, bytes/s per direction: one NVLink, one PCIe way, one network card."""

    nvlink: float | None = None
    pcie: float | None = None
    card: float | None = None


@dataclass(frozen=True)
class Topology:
    """The ways between the devices of a host: `ways[a][b]` is `NV4`, `PIX`, `SYS`, ... as printed."""

    ways: Mapping[str, Mapping[str, str]]
    accelerators: tuple[str, ...]
    cards: tuple[str, ...] = field(default=())

    def nvlinks(self, one: str, other: str) -> int:
        """Return the number of NVLinks between two accelerators."""
        found = re.fullmatch(r"NV(\d+)", self.ways[one].get(other, ""))
        return int(found[1]) if found else 0

    def pairs(self) -> list[tuple[str, str]]:
        """Return each pair of accelerators once."""
        ones = self.accelerators
        return [(one, other) for place, one in enumerate(ones) for other in ones[place + 1 :]]

    def per_switch(self) -> int:
        """Return how many accelerators share a PCIe switch: the largest such group."""
        groups = [
            1 + sum(self.ways[one].get(other) in ON_SWITCH for other in self.accelerators if other != one)
            for one in self.accelerators
        ]
        return max(groups)


def read_topology(path: str) -> Topology:
    """Return the matrix in a file. Raises InputError when there is none, or rows of it are missing."""
    names: list[str] = []
    ways: dict[str, dict[str, str]] = {}
    for number, raw in lines(Path(path), WHAT):
        words = _ESCAPES.sub("", raw).split()
        if not names and len(words) > 0 and words[0] == "GPU0" and not _is_row(words):
            names = _devices(words)
        elif names and words and words[0] in names and _is_row(words):
            ways[words[0]] = _row(words, names, Where(path, number))
    return _checked(names, ways, path)


def _is_row(words: Sequence[str]) -> bool:
    return len(words) > 1 and (words[1] in KINDS or re.fullmatch(r"NV\d+", words[1]) is not None)


def _devices(words: Sequence[str]) -> list[str]:
    """Return the devices of the header, which ends in words about processors."""
    found = []
    for word in words[:MOST_DEVICES]:
        if not (re.fullmatch(r"GPU\d+", word) or _CARD.match(word)):
            break
        found.append(word)
    return found


def _row(words: Sequence[str], names: Sequence[str], where: Where) -> dict[str, str]:
    cells = words[1 : 1 + len(names)]
    wrong = [cell for cell in cells if cell not in KINDS and not re.fullmatch(r"NV\d{1,3}", cell)]
    if len(cells) < len(names) or wrong:
        raise InputError(
            f"the row of {words[0]} is cut short, or a way is none of {', '.join(KINDS)}, NV#", where
        )
    return dict(zip(names, cells, strict=True))


def _checked(names: Sequence[str], ways: Mapping[str, Mapping[str, str]], path: str) -> Topology:
    if not names:
        raise InputError(f"has no matrix of ways between GPUs: it is not {WHAT}", Where(path))
    if missing := [name for name in names if name.startswith("GPU") and name not in ways]:
        raise InputError(f"is cut short: the rows of {', '.join(missing[:4])} are missing", Where(path))
    accelerators = tuple(name for name in names if name.startswith("GPU"))
    return Topology(ways, accelerators, tuple(name for name in names if name not in accelerators))


def fragment(topology: Topology, rates: Rates) -> str:
    """Return the `cluster` part of a scenario (YAML) with what the matrix says, and what was assumed."""
    notes, inside = _inside(topology, rates)
    cards = _cards(topology, rates)
    return "\n".join(
        [
            *(f"# {note}" for note in notes),
            "cluster:",
            f"  per_host: {len(topology.accelerators)}",
            "  fabric:",
            "    kind: flat",
            "    start_up: 20 us  # assumed: the matrix says nothing of it",
            f"    inside: {inside}",
            *cards,
            "",
        ]
    )


def _inside(topology: Topology, rates: Rates) -> tuple[list[str], str]:
    """Return what is to be said, and the `inside` of a fabric."""
    counts = [topology.nvlinks(*pair) for pair in topology.pairs()]
    rate = rates.nvlink or NVLINK
    told = [] if rates.nvlink else [f"assumed: {format_bandwidth(NVLINK)} per NVLink and direction"]
    if not counts or not any(counts):
        return _pcie(topology, rates)
    peers = len(topology.accelerators) - 1
    if min(counts) == max(counts) and counts[0] * peers > MOST_LINKS:
        return told, f"{{kind: switch, bandwidth: {format_bandwidth(counts[0] * rate)}}}"
    if min(counts) == max(counts):
        return told, f"{{kind: full_mesh, bandwidth: {format_bandwidth(counts[0] * rate)}}}"
    least = min(
        sum(topology.nvlinks(one, other) for other in topology.accelerators) for one in topology.accelerators
    )
    uneven = f"NVLinks join some pairs only: taken as one switch at the {least} links of the least joined GPU"
    return [*told, uneven], f"{{kind: switch, bandwidth: {format_bandwidth(max(least, 1) * rate)}}}"


def _pcie(topology: Topology, rates: Rates) -> tuple[list[str], str]:
    rate = format_bandwidth(rates.pcie or PCIE)
    told = [] if rates.pcie else [f"assumed: {format_bandwidth(PCIE)} per PCIe way and direction"]
    per_switch = topology.per_switch()
    while len(topology.accelerators) % per_switch:
        per_switch -= 1
    lane = f"{{bandwidth: {rate}}}"
    return told, f"{{kind: pcie, lane: {lane}, per_switch: {per_switch}, trunk: {lane}}}"


def _cards(topology: Topology, rates: Rates) -> list[str]:
    if not topology.cards:
        return []
    if rates.card is None:
        return [f"    # nics: {{per_host: {len(topology.cards)}, bandwidth: ...}}  # the matrix has no rates"]
    bandwidth = format_bandwidth(rates.card)
    return [f"    nics: {{per_host: {len(topology.cards)}, bandwidth: {bandwidth}}}"]
