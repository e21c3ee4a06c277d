"""Whether the stages of a policy move what a batch needs: no more, no less, and as declared."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulator.pipeline import Pipeline, Stage
from simulator.policies.base import Policy
from simulator.quantities import AllToAllWork, CopyWork, InTurn, PartsWork, RowWork, Work, leaves
from simulator.sharding import TrainStep
from simulator.sharding.moves import width_total
from simulator.testing.error import PolicyError


def check_movement(policy: Policy, step: TrainStep, pipeline: Pipeline) -> None:
    """Raise PolicyError unless rows and gradients travel as the step or the policy says."""
    if any(stage.kind == "all_to_all" for stage in pipeline.stages) or "servers" not in _needs(policy):
        _check_exchange(policy, step, pipeline)
    else:
        _check_served(policy, step, pipeline)


def parts_of(policy: Policy) -> int:
    """Return in how many micro-batches a policy computes a batch."""
    return int(getattr(policy, "micro_batches", 1))


def _needs(policy: Policy) -> tuple[str, ...]:
    return tuple(getattr(policy, "needs", ()))


def _check_served(policy: Policy, step: TrainStep, pipeline: Pipeline) -> None:
    """Rows from servers and back, bytes per rank and batch, as `policy.moves(step)` declares them."""
    whole = float(width_total(step.served.batch_rows))
    declared = policy.moves(step) if hasattr(policy, "moves") else (whole, whole)
    for path, wanted in zip(("host_to_device", "device_to_host"), declared, strict=True):
        moved = _per_batch(pipeline, path)
        if not np.isclose(moved, wanted, rtol=1e-9):
            raise PolicyError(
                f"parameter_server stages move {moved:.6g} bytes {path} per rank and batch; "
                f"the policy declares {wanted:.6g}"
            )
    sent = sum(_sent(stage) / stage.every for stage in pipeline.stages)
    if sent < sum(declared):
        raise PolicyError(f"{sum(declared):.6g} bytes of rows move per batch, but only {sent:.6g} are sent")


def _per_batch(pipeline: Pipeline, path: str) -> float:
    found = 0.0
    for stage in pipeline.stages:
        if stage.kind == "parameter_server":
            copies = [one for one in leaves(stage.work) if isinstance(one, CopyWork) and one.path == path]
            found += sum(float(np.mean(copy.bytes)) for copy in copies) / stage.every
    return found


def _sent(stage: Stage) -> float:
    rows = [one for one in leaves(stage.work) if isinstance(one, RowWork) and one.tier == "remote"]
    return sum(float(np.mean(one.rows)) * one.on_wire for one in rows)


def _check_exchange(policy: Policy, step: TrainStep, pipeline: Pipeline) -> None:
    """Rows out and gradients back, once each: 2 x the rows that the parts of a batch ask for."""
    moved = 0.0
    for stage in pipeline.stages:
        for part in _exchanges(stage.work):
            sent, received = np.mean(part.bytes), np.mean(_received(part))
            if not np.isclose(sent, received, rtol=1e-9):
                raise PolicyError(
                    f"{stage.name}: ranks send {sent:.6g} bytes each and receive {received:.6g}"
                )
            moved += float(received) / stage.every if stage.kind == "all_to_all" else 0.0
    micro = step.micro_batch(parts := parts_of(policy))
    ways = _exchanges(InTurn((micro.exchange_rows, micro.send_gradients)))
    asked = parts * sum(float(np.mean(_received(way))) for way in ways)
    if not np.isclose(moved, asked, rtol=1e-9):
        raise PolicyError(
            f"the all-to-all stages move {moved:.6g} bytes per rank and batch; its rows and their gradients, "
            f"once each in {parts} parts, are {asked:.6g}"
        )


def _received(work: AllToAllWork | PartsWork) -> Any:
    return next(size for size in (getattr(work, "received_bytes", None), work.bytes) if size is not None)


def _exchanges(work: Work) -> Iterator[AllToAllWork | PartsWork]:
    yield from (one for one in leaves(work) if isinstance(one, AllToAllWork | PartsWork))
