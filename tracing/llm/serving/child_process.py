"""A process that ends with the one that started it, however that one ends.

A small process, whose standard input is a pipe from its parent, runs the command. The system closes the pipe when the
parent ends, even if it was killed and could not clean up; then everything in the process group is killed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO


def start_child(
    command: Sequence[str],
    *,
    output: int | IO[bytes],
    env: Mapping[str, str] | None = None,
    sockets: Sequence[socket.socket] = (),
) -> subprocess.Popen[bytes]:
    """Start `command` in its own process group. The process returned leads the group and has its exit code.

    Args:
        output: receives its output and errors.
        env: its environment; None means this process's.
        sockets: it has these too, under the same numbers.
    """
    return subprocess.Popen(  # noqa: S603 (our own interpreter and this file; the command is the caller's)
        [sys.executable, "-I", __file__, *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        pass_fds=[sock.fileno() for sock in sockets],
        start_new_session=True,
    )


def _run(command: Sequence[str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        # The command receives these too, and this process ends after it.
        signal.signal(number, lambda number, frame: None)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603 (see above)

    def end_with_child() -> None:
        code = child.wait()
        os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=end_with_child, daemon=True).start()
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _run(sys.argv[1:])
