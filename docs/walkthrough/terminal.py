"""What a command shows in a terminal while it runs."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import pyte
from pyte.screens import Char

COLUMNS, LINES = 104, 27


class Run(NamedTuple):
    """Neighbouring characters of a line that look the same; colours are names or RRGGBB."""

    column: int
    text: str
    colour: str
    bold: bool


Line = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal shows from some second on."""

    second: float
    lines: tuple[Line, ...]


def screens(command: str, environment: dict[str, str]) -> list[Screen]:
    """Runs a command of bash in a terminal of its own, and gives what it showed, without repetitions.

    Raises:
        RuntimeError: the command failed.
    """
    terminal = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(terminal)
    shown: list[Screen] = []
    for second, output in _output(command, environment):
        stream.feed(output)
        lines = tuple(_line(terminal.buffer[row]) for row in range(LINES))
        if not shown or lines != shown[-1].lines:
            shown.append(Screen(second, lines))
    return shown


def _output(command: str, environment: dict[str, str]) -> Iterator[tuple[float, bytes]]:
    child, terminal = pty.fork()
    if child == 0:
        size = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
        os.execvpe("bash", ["bash", "-c", command], environment | size)  # noqa: S606, S607
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    began = time.monotonic()
    while True:
        try:
            output = os.read(terminal, 65_536)
        except OSError:  # as Linux tells that the other side was closed
            break
        if not output:
            break
        yield time.monotonic() - began, output
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise RuntimeError(f"exit code {code}: {command}")


def _line(characters: dict[int, Char]) -> Line:
    cells = [(column, characters[column]) for column in range(COLUMNS)]
    runs = []
    for (colour, bold), group in groupby(cells, key=lambda cell: (cell[1].fg, cell[1].bold)):
        same = list(group)
        text = "".join(character.data for _, character in same)
        if text.strip():
            column = same[0][0] + len(text) - len(text.lstrip())
            runs.append(Run(column, text.strip(), colour, bold))
    return tuple(runs)
