"""Which results do the same job, so that a ratio of their steps is due to policies or sizes alone."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

LEFT_OUT = ("name", "policy")
LOOKING = ("batches", "warm_up", "interval", "fold")  # how long and how closely is looked, not at what


def job_of(resolved: Mapping[str, Any]) -> str:
    """Return twelve digits that name a resolved scenario but for its name, policy and number of hosts."""
    kept = {name: part for name, part in resolved.items() if name not in LEFT_OUT}
    kept["cluster"] = _without(resolved.get("cluster"), ("hosts",))
    kept["run"] = _without(resolved.get("run"), LOOKING)
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _without(part: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(part, Mapping):
        return part
    return {name: value for name, value in part.items() if name not in names}
