"""A measurement of this machine, for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.cli.output import count, pairs, plain, table
from analysis.recording_doubts import doubts
from simulator.units import format_time

if TYPE_CHECKING:
    from rich.console import Console


def curve_rows(measurement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one flat record for each point of a measurement, RPC included."""
    rows = [
        {
            "operation": curve["operation"],
            "shape": "-".join(map(str, curve["shape"])),
            "context": curve["context"],
            "unit": curve["unit"],
            **point,
        }
        for curve in measurement["primitives"]
        for point in curve["points"]
    ]
    return rows + [_rpc_row(one) for one in measurement["rpc"]]


def _rpc_row(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operation": f"rpc {one['mode']}",
        "shape": f"{one['tables']} tables",
        "context": float(one["keys"]),
        "unit": "bytes",
        "size": one["bytes"],
        "seconds": one["seconds"],
        "p90_over_p50": one["p90_over_p50"],
        "cpu_seconds": None,
        "repeats": one["repeats"],
        "back_to_back": None,
    }


def draw_measurement(measurement: Mapping[str, Any], console: "Console") -> None:
    """Draw what was measured where, each curve by its ends, and what to doubt."""
    console.print(pairs(_circumstances(measurement)))
    console.print()
    drawn = table("operation", "sizes", "times", "p90/p50")
    for curve in measurement["primitives"]:
        points = curve["points"]
        worst = max(point["p90_over_p50"] for point in points)
        sizes = _ends([count(point["size"]) for point in points])
        times = _ends([format_time(point["seconds"]) for point in points])
        drawn.add_row(plain(_name(curve)), f"{sizes} {curve['unit']}", times, f"{worst:.2f}")
    console.print(drawn)
    for one in measurement["rpc"]:
        text = f"rpc {one['mode']}: {one['tables']} tables x {one['keys']} keys"
        console.print(plain(f"{text}  {format_time(one['seconds'])}"))
    for doubt in doubts(measurement):
        console.print(plain(f"! {doubt}"), style="yellow")


def _circumstances(measurement: Mapping[str, Any]) -> list[tuple[str, str]]:
    launch, where = measurement["launch"], measurement["environment"]
    return [
        ("machine", f"{where['processor']}, {where['cores']} cores"),
        ("BLAS", where["blas"]),
        ("ranks", f"{launch['ranks']} on {launch['substrate']}, links: {launch['links']}"),
    ]


def _name(curve: Mapping[str, Any]) -> str:
    shape = "-".join(map(str, curve["shape"]))
    parts = [curve["operation"], shape, f"({count(curve['context'])})" if curve["context"] else ""]
    return " ".join(part for part in parts if part)


def _ends(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} - {texts[-1]}"
