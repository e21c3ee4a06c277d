"""The process behind tests/kit/warm.py: it imports the product once and forks for every command."""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import traceback
import types
from typing import Any

IMPORTED = (
    *("numpy", "pandas", "scipy.optimize", "yaml", "pyarrow.parquet", "networkx", "pydantic", "rich.table"),
    *("simulator.scenario", "simulator.testing", "simulator.engine", "simulator.workload.keys"),
    *("analysis.cli.app", "analysis.sweep", "analysis.planning", "analysis.figures", "matplotlib.figure"),
)
LOOKS_UP_S = 5.0


def serve(address: str) -> None:
    """Answer requests until the process is ended, or the one that started it is gone."""
    parent = os.getppid()
    for name in IMPORTED:
        importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that answer are nobody's to wait for
    gc.freeze()
    print("ready", flush=True)
    listener.settimeout(LOOKS_UP_S)
    while os.getppid() == parent:
        try:
            link = listener.accept()[0]
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            os._exit(answer(link))
        link.close()


def answer(link: socket.socket) -> int:
    """Run one command in a child and tell its exit code to who asked."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(link, 8, 3)
    size, asked = int.from_bytes(head, "big"), b""
    while len(asked) < size:
        asked += link.recv(size - len(asked))
    child = os.fork()
    if child == 0:
        link.close()
        os._exit(run(streams, *json.loads(asked)))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    link.sendall(str(status).encode())
    return 0


def run(streams: list[int], name: str, words: list[str], folder: str, environ: dict[str, str]) -> int:
    """Become the command that was asked for, and return its exit code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    del sys.path[: 0 if sys.flags.safe_path else 1]
    sys.path[:0] = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.modules["__main__"] = types.ModuleType("__main__")
    importlib.invalidate_caches()
    try:
        recscale(words) if name == "recscale" else python(words)
    except SystemExit as left:
        return exit_code(left)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def exit_code(left: SystemExit) -> int:
    """Return the code as Python does: a text is printed and means 1."""
    if left.code is None or isinstance(left.code, int):
        return int(left.code or 0)
    print(left.code, file=sys.stderr)
    return 1


def recscale(words: list[str]) -> None:
    """Be the installed command."""
    from analysis.cli.running import main

    sys.argv = ["recscale", *words]
    main()


def python(words: list[str]) -> None:
    """Be `python FILE`, `python -m MODULE`, `python -c TEXT` or `python -`."""
    first, *rest = words or ["-"]
    scope: dict[str, Any] = sys.modules["__main__"].__dict__
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), scope)
    elif first == "-":
        sys.argv = words
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), scope)
    else:
        sys.argv = words
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
