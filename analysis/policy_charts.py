"""The Gantt charts of `docs/concepts`: one per policy, computed from a shipped scenario.

`python -m analysis.policy_charts` draws them anew (run it in the checkout).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.scenario import Run, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

FOLDER = Path("docs/concepts/charts")
DIGEST = "bars"
COLOURS = 48


@dataclass(frozen=True)
class Chart:
    """`steps` steps of a shipped scenario under a policy (default: its own)."""

    file: str
    policy: Mapping[str, Any] | None = None
    settings: tuple[str, ...] = ()
    steps: int = 3

    def run(self) -> Run:
        """Simulate it."""
        scenario = load(shipped_folder() / self.file, list(self.settings))
        return run_scenario(scenario.with_policy(dict(self.policy)) if self.policy else scenario)


def _torchrec(name: str) -> Chart:
    return Chart("torchrec/cached_tables.yaml", {"kind": f"torchrec_{name}"})


def _criteo(policy: Mapping[str, Any]) -> Chart:
    return Chart("bagpipe/criteo_kaggle.yaml", policy, ("run.warm_up=42", "run.batches=102"))


ACCUMULATING = {
    "kind": "nested",
    "inter_batch": {"kind": "torchrec_sparse_dist"},
    "intra_batch": {"kind": "gradient_accumulation", "batches": 2},
}
GROUPED = {"kind": "two_d_sparse", "inter_batch": "dual_buffer"}
CHARTS: Mapping[str, Chart] = {
    "hugectr": Chart("peers/astrasim_f1.yaml"),
    "sparse_core": Chart("google/host_tables.yaml", {"kind": "sparse_core"}),
    "sparse_core_pipelined": Chart("google/host_tables.yaml"),
    "torchrec_base": _torchrec("base"),
    "torchrec_sparse_dist": _torchrec("sparse_dist"),
    "torchrec_fused": _torchrec("fused"),
    "torchrec_prefetch": _torchrec("prefetch"),
    "torchrec_semi_sync": _torchrec("semi_sync"),
    "gradient_accumulation": Chart("torchrec/cached_tables.yaml", ACCUMULATING),
    "two_d_sparse": Chart("sharding/two_d_sparse.yaml", GROUPED),
    "rpc_per_table": Chart("servers/caught_up.yaml", {"kind": "rpc_per_table"}, steps=2),
    "rpc_coalesced": Chart("servers/caught_up.yaml", steps=2),
    "no_cache": _criteo({"kind": "no_cache"}),
    "bagpipe": _criteo({"kind": "bagpipe", "lookahead": 8}),
    "fae": _criteo({"kind": "fae"}),
    "het": _criteo({"kind": "het", "staleness": 2}),
}


def draw(name: str, folder: Path = FOLDER) -> Path:
    """Draw the chart called `name` into `folder` and return its path.

    The picture carries the digest of what it shows, so that a test can tell whether it is up to date.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    from analysis.plots.gantt import draw_gantt

    chart, path = CHARTS[name], folder / f"{name}.png"
    run, told = chart.run(), PngInfo()
    told.add_text(DIGEST, digest(run, chart.steps))
    draw_gantt(run, path, chart.steps)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS)
    small.save(path, optimize=True, pnginfo=told)
    return path


def digest(run: Run, steps: int) -> str:
    """Return sixteen digits that name the bars of a chart, to the microsecond."""
    from analysis.plots.schedule import Schedule

    bars = [
        (bar.stage, bar.stream, bar.batch, round(bar.begins, 3), round(bar.ends, 3))
        for bar in Schedule(run, steps).bars
    ]
    return hashlib.blake2b(repr(bars).encode(), digest_size=8).hexdigest()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in CHARTS:
        print(draw(name))
