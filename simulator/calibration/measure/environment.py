"""What a measurement depends on and must be recorded with it: machine, kernel, libraries, BLAS, settings."""

import ctypes
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

SINGLE_THREADED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
# Freed memory is kept and used again (glibc): a fresh page costs more than writing to it.
KEPT_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
}
# Threads of Open MPI that wait let others run: two that poll on one core would each keep it for a whole tick
# of the scheduler (4 ms), and ranks whose turns differ would miss each other for several.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
NOTED = (*SINGLE_THREADED, *KEPT_MEMORY, *YIELDING, "OPENBLAS_CORETYPE")
LIBRARIES = ("numpy", "scipy", "mpi4py", "openmpi", "grpcio", "torch")


def for_ranks() -> dict[str, str]:
    """Return the environment of ranks: one BLAS thread, kept memory, and MPI that yields while it waits."""
    return {**os.environ, **dict.fromkeys(SINGLE_THREADED, "1"), **KEPT_MEMORY, **YIELDING}


def environment() -> dict[str, Any]:
    """Return what this process runs on, as plain data."""
    return {
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": cores(),
        "caches": _caches(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES if _version(name)},
        "blas": blas_kernel(),
        "variables": {name: os.environ[name] for name in NOTED if name in os.environ},
    }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    lines = _lines("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _caches() -> dict[str, str]:
    """Return the size of each cache of core 0, as the kernel writes it."""
    found: dict[str, str] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_lines(str(index / name)) for name in ("level", "type", "size"))
        if level and kind and size:
            found[f"L{level[0]} {kind[0].lower()}"] = size[0]
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def blas_kernel() -> str:
    """Return the name and kernel of the BLAS that numpy uses, such as `openblas SkylakeX`.

    OpenBLAS picks a kernel when it is loaded; an environment variable may force another one.
    """
    import numpy as np

    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    for library in _loaded_blas():
        for symbol in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
            ask = getattr(ctypes.CDLL(library), symbol, None)
            if ask is not None:
                ask.restype = ctypes.c_char_p
                return f"{name} {ask().decode()}"
    return str(name)


def _loaded_blas() -> list[str]:
    """Return the shared libraries of this process that are an OpenBLAS."""
    if sys.platform != "linux":
        return []
    paths = {line.split()[-1] for line in _lines("/proc/self/maps") if "openblas" in line}
    return sorted(paths)
