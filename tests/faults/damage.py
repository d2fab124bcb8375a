"""Damage done to sound files: parts changed, moved, doubled or lost, texts spoiled, bytes changed, ends cut off."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Damage = Callable[[bytes, random.Random], bytes]

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        2**63,
        -(2**70),
        10**400,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        -0.0,
        "",
        "a@1",
        "\ud83d",
        "\x00",
        "__none__",
    ),
    *("COMMENT:NONE@1", "__none_op__", "9" * 400, "[" * 3000, "-" * 3000, "1e999", "'\\", "x" * 100_000, [], {}, [[]]),
    *({"memtune": {}}, {"memtune": {"id": "a", "name": 1}}, {"key": "memtune.record", "value": {"stringValue": "{}"}}),
)

PIECES = (
    *("[" * 3000, "{" * 3000, "- " * 2000, "&a [*a, *a]", "*a", "!!python/object/apply:os.getcwd []", "!!binary x"),
    *("2024-99-99", "9" * 5000, "1e400", ".nan", "0x", "<<: x", "? [a]", "---", "\t", "\x00", "\x85", "'", '"', ": "),
    *("{}", "{{", "}", "{context}", "{context!r:{question}}", "{0}", "\r", "# ", "|", ">", "%TAG ! x", "@", "`"),
)
"""What is put into texts, with YAML and templates in mind."""


def in_json(content: bytes, draw: random.Random) -> bytes:
    """A JSON document with a few of its parts changed, and at times cut or with bytes changed."""
    return in_bytes(json.dumps(_changed(json.loads(content), draw)).encode(), draw)


def in_lines(content: bytes, draw: random.Random) -> bytes:
    """JSON lines, some of them damaged, doubled, moved or lost, and at times cut or with bytes changed."""
    lines = content.splitlines()
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(lines))
        action = draw.randrange(6)
        if action == 0 and len(lines) > 1:
            del lines[at]
        elif action == 1:
            lines.insert(draw.randrange(len(lines) + 1), lines[at])
        elif action == 2:
            lines[at] = draw.choice((b"", b"null", b"[" * 100_000, b"{}", b"7", b"\xff", b'{"type": "?"}'))
        else:
            try:
                changed = _changed([json.loads(lines[at])], draw)
                lines[at] = json.dumps(changed[0] if changed else None).encode()
            except (ValueError, RecursionError, IndexError, KeyError, TypeError):
                continue  # damaged already
    return in_bytes(b"\n".join(lines) + b"\n", draw)


def in_text(content: bytes, draw: random.Random) -> bytes:
    """A text with pieces put in, and lines doubled, moved or lost."""
    lines = content.decode().split("\n")
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        action = draw.randrange(4)
        if action == 0 and len(lines) > 1:
            del lines[at]
        elif action == 1:
            lines.insert(draw.randrange(len(lines) + 1), lines[at])
        else:
            place = draw.randint(0, len(lines[at]))
            lines[at] = lines[at][:place] + draw.choice(PIECES) + lines[at][place + draw.randint(0, 5) :]
    return in_bytes("\n".join(lines).encode(), draw)


def in_bytes(content: bytes, draw: random.Random) -> bytes:
    """Now and then cut off, and now and then with a few bytes changed."""
    damaged = bytearray(content)
    if draw.random() < 0.2:
        del damaged[draw.randint(0, len(damaged)) :]
    if draw.random() < 0.2:
        for _ in range(draw.randint(1, 4)):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
    return bytes(damaged)


def _changed(document: Any, draw: random.Random) -> Any:
    document = copy.deepcopy(document)
    for _ in range(draw.randint(1, 6)):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw.choice(places)
        action = draw.randrange(5)
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif action == 2:
            source, other = draw.choice(places)
            holder[key] = copy.deepcopy(source[other])
        elif action == 3 and isinstance(holder[key], str):
            text = holder[key]
            at = draw.randint(0, len(text))
            holder[key] = text[:at] + str(draw.choice(ODD))[:50] + text[at + draw.randint(0, 3) :]
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD))
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(value, dict | list) and value:
                waiting.append(value)
