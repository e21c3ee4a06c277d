"""Processes that start in a few milliseconds: they are forked off one that has the product imported already.

`warm_commands(folder)` starts that process and yields a folder with the commands `recscale` and `python`. To
a shell they are programs like any other: their own process, working folder, environment, streams and exit
code. What they save is the second in which Python imports the product.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")
CLIENT = """\
#!{python} -ISE
import json, os, socket, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
asked = json.dumps([name, words, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(link, [len(asked).to_bytes(8, "big")], [0, 1, 2])
link.sendall(asked)
code = int(link.recv(16) or b"1")
if code < 0:  # a signal ended it
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextlib.contextmanager
def warm_commands(folder: Path) -> Iterator[Path]:
    """Yield a folder to put first on PATH; the process behind its commands ends with the context."""
    address, bin_folder = folder / "warm.socket", folder / "bin"
    bin_folder.mkdir()
    for name in ("recscale", "python"):
        (bin_folder / name).write_text(CLIENT.format(python=sys.executable, address=str(address)))
        (bin_folder / name).chmod(0o755)
    with subprocess.Popen([sys.executable, SERVER, address], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        try:
            yield bin_folder
        finally:
            server.terminate()
