"""Process groups of torch.distributed: gloo on CPUs, NCCL on NVIDIA GPUs, HCCL on Ascend NPUs (torch_npu).

A channel takes arrays in host memory and gives such, as the trainer here needs them. With NCCL and HCCL that
means a copy to the device and one back in every call, so what a call takes is no time of the library: its
curves are called `staged_...`. The library's own times are taken by `torch_collectives`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import STAGED, Array, Channel, slices
from simulator.calibration.measure.links import DEVICE
from simulator.calibration.measure.sockets import Mesh
from simulator.calibration.measure.torch_collectives import BY_ALL_REDUCE, into_all, into_part
from simulator.errors import InputError, did_you_mean

DEVICES = {"gloo": "cpu", "nccl": "cuda", "hccl": "npu"}
COLLECTIVES = ("all_to_all", "all_reduce", "all_gather", "reduce_scatter", "broadcast")


@dataclass(frozen=True)
class Backend:
    """A backend of torch.distributed by `name`. Raises InputError for one that is not known here."""

    name: str

    def __post_init__(self) -> None:
        """Refuse what is not a backend."""
        if self.name not in DEVICES:
            raise InputError(f'no torch backend "{self.name}"{did_you_mean(self.name, DEVICES)}')

    def device(self, rank: int, ranks: int = 1) -> Any:
        """Return the device of one of `ranks` ranks; InputError when this machine has too few of the kind."""
        import torch

        kind = DEVICES[self.name]
        if kind == "cpu":
            return torch.device("cpu")
        if kind == "npu":
            _require_npu()
        present = getattr(torch, kind).device_count()
        if not present:
            raise InputError(f"torch sees no {kind} device here: take the gloo backend")
        if ranks > present:
            raise InputError(f"{ranks} ranks need as many {kind} devices; torch sees {present}")
        return torch.device(kind, rank)

    def claimed(self, rank: int, ranks: int) -> Any:
        """Return the device of a rank and make it the current one of this thread: events lie there."""
        import torch

        device = self.device(rank, ranks)
        if device.type != "cpu":
            getattr(torch, device.type).set_device(device)
        return device


def _require_npu() -> None:
    try:
        import torch_npu  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        raise InputError(f"HCCL needs torch_npu: {error}") from None


class TorchChannel(Channel):
    """A process group of torch.distributed; tensors lie on `device` while they travel."""

    def __init__(self, group: Any, device: Any) -> None:
        """Take over a process group."""
        import torch.distributed as dist

        self._group, self.device = group, device
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def curve_name(self, operation: str) -> str:
        """Return what a curve of timed calls is: staged through a device, made of another one, or itself."""
        if operation not in COLLECTIVES:
            return operation
        if self.device.type != "cpu":
            return f"{STAGED}{operation}"
        return BY_ALL_REDUCE if operation == "reduce_scatter" else operation

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
        mine = self._there(np.ascontiguousarray(part).reshape(-1))
        everybody = mine.new_empty(self.size * len(mine))
        into_all(everybody, mine, self._group)
        return list(self._back(everybody).reshape(self.size, -1))

    def all_reduce(self, vector: Array) -> Array:
        """Add up vectors."""
        import torch.distributed as dist

        total = self._there(vector.copy())
        dist.all_reduce(total, group=self._group)
        return self._back(total)

    def reduce_scatter(self, vector: Array) -> Array:
        """Add up vectors; keep a slice. Slices are filled up to one length for the library."""
        cuts = slices(len(vector), self.size)
        longest = max(cut.stop - cut.start for cut in cuts)
        filled = np.zeros((self.size, longest), dtype=vector.dtype)
        for row, cut in zip(filled, cuts, strict=True):
            row[: cut.stop - cut.start] = vector[cut]
        flat = self._there(filled.reshape(-1))
        mine = flat.new_empty(longest)
        into_part(mine, flat, self._group)
        own = cuts[self.rank]
        return self._back(mine)[: own.stop - own.start]

    def broadcast(self, vector: Array) -> Array:
        """Send the vector of rank 0 to all."""
        import torch.distributed as dist

        copy = self._there(vector.copy())
        dist.broadcast(copy, 0, group=self._group)
        return self._back(copy)

    def close(self) -> None:
        """Leave the job's process groups, this and all others."""
        import torch.distributed as dist

        if dist.is_initialized():
            dist.destroy_process_group()

    def _there(self, array: Array) -> Any:
        import torch

        return torch.from_numpy(array).to(self.device)

    def _back(self, tensor: Any) -> Array:
        array: Array = tensor.cpu().numpy()
        return array


def channels(mesh: Mesh, rank: int, count: int, backend: Backend) -> list[TorchChannel]:
    """Return `count` process groups over the ranks of `mesh`. Raises InputError where devices are lacking."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    ranks = len(mesh.addresses)
    device = backend.claimed(rank, ranks)
    if not mesh.addresses[0].startswith("127."):
        os.environ["GLOO_SOCKET_IFNAME"] = DEVICE
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = mesh.addresses[0], str(mesh.first_port)
    dist.init_process_group(backend.name, rank=rank, world_size=ranks)
    return [TorchChannel(dist.new_group(), device) for _ in range(count)]
