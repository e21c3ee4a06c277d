"""Collectives of torch.distributed: gloo on CPUs, NCCL on NVIDIA GPUs, HCCL on Ascend NPUs (torch_npu).

Arrays come and go in host memory; with NCCL and HCCL the copies to and from the device are part of
what a call takes, and so is waiting for the device.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import Array, Channel, slices
from simulator.calibration.measure.links import DEVICE
from simulator.calibration.measure.sockets import Mesh
from simulator.errors import InputError, did_you_mean

DEVICES = {"gloo": "cpu", "nccl": "cuda", "hccl": "npu"}


@dataclass(frozen=True)
class Backend:
    """A backend of torch.distributed by `name`. Raises InputError for one that is not known here."""

    name: str

    def __post_init__(self) -> None:
        """Refuse what is not a backend."""
        if self.name not in DEVICES:
            raise InputError(f'no torch backend "{self.name}"{did_you_mean(self.name, DEVICES)}')

    def device(self, rank: int) -> Any:
        """Return the device of a rank; InputError when this machine has none of the kind."""
        import torch

        kind = DEVICES[self.name]
        if kind == "cpu":
            return torch.device("cpu")
        if kind == "npu":
            _require_npu()
        present = getattr(torch, kind).device_count()
        if not present:
            raise InputError(f"torch sees no {kind} device here: take the gloo backend")
        return torch.device(kind, rank % present)


def _require_npu() -> None:
    try:
        import torch_npu  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        raise InputError(f"HCCL needs torch_npu: {error}") from None


class TorchChannel(Channel):
    """A process group of torch.distributed on `device`."""

    def __init__(self, group: Any, device: Any) -> None:
        """Take over a process group."""
        import torch.distributed as dist

        self._group, self.device = group, device
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Exchange lengths, then bytes."""
        import torch
        import torch.distributed as dist

        kind = parts[0].dtype
        sent = [int(part.nbytes) for part in parts]
        lengths = self._there(np.array(sent, dtype=np.int64))
        coming = torch.empty_like(lengths)
        dist.all_to_all_single(coming, lengths, group=self._group)
        counts = [int(count) for count in coming.cpu()]
        flat = self._there(
            np.concatenate([np.ascontiguousarray(p).reshape(-1).view(np.uint8) for p in parts])
        )
        received = torch.empty(sum(counts), dtype=torch.uint8, device=self.device)
        dist.all_to_all_single(received, flat, counts, sent, group=self._group)
        back = self._back(received)
        return [part.view(kind) for part in np.split(back, np.cumsum(counts)[:-1])]

    def all_gather(self, part: Array) -> list[Array]:
        """Gather parts of equal length."""
        import torch
        import torch.distributed as dist

        mine = self._there(np.ascontiguousarray(part).reshape(-1))
        everybody = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(everybody, mine, group=self._group)
        return [self._back(other) for other in everybody]

    def all_reduce(self, vector: Array) -> Array:
        """Add up vectors."""
        import torch.distributed as dist

        total = self._there(vector.copy())
        dist.all_reduce(total, group=self._group)
        return self._back(total)

    def reduce_scatter(self, vector: Array) -> Array:
        """Add up vectors; keep a slice (gloo has no reduce-scatter of its own)."""
        return self.all_reduce(vector)[slices(len(vector), self.size)[self.rank]]

    def broadcast(self, vector: Array) -> Array:
        """Send the vector of rank 0 to all."""
        import torch.distributed as dist

        copy = self._there(vector.copy())
        dist.broadcast(copy, 0, group=self._group)
        return self._back(copy)

    def _there(self, array: Array) -> Any:
        import torch

        return torch.from_numpy(array).to(self.device)

    def _back(self, tensor: Any) -> Array:
        array: Array = tensor.cpu().numpy()
        return array


def channels(mesh: Mesh, rank: int, count: int, backend: Backend) -> list[TorchChannel]:
    """Return `count` process groups over the ranks of `mesh`."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    device = backend.device(rank)
    if not mesh.addresses[0].startswith("127."):
        os.environ["GLOO_SOCKET_IFNAME"] = DEVICE
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = mesh.addresses[0], str(mesh.first_port)
    dist.init_process_group(backend.name, rank=rank, world_size=len(mesh.addresses))
    return [TorchChannel(dist.new_group(), device) for _ in range(count)]
