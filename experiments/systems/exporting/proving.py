"""Runs the library that an export is for, in an environment that has it, and records the requests that it sends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.systems.exporting.capture_server import CaptureServer, Messages, Reply
from experiments.systems.libraries import Library, installed_version
from experiments.systems.worker.environment import Environment
from tracing.errors import ConfigError, ContractError, MemtuneError
from tracing.llm.forwarding.forwarded_calls import error_read
from tracing.recording.redaction import excerpt

SECONDS = 600
"""How long a library may take: it is imported, sets up its stores and sends a few requests to loopback."""

_LONGEST_SAID = 300
_LONGEST_OPENING = 80


@dataclass(frozen=True, slots=True)
class ProvenLibrary(Library):
    """A library that an export is for.

    Attributes:
        environment: the one that `memtune system install` makes for it; None for a library of memtune's own extras.
    """

    environment: Environment | None = None

    def python(self) -> Path:
        """The interpreter that has it with what its environment has beside it: memtune's own, or that environment's."""
        from packaging.requirements import Requirement

        requirements = () if self.environment is None else self.environment.requirements
        if self.is_here() and all(installed_version(Requirement(text).name) for text in requirements):
            return Path(sys.executable)
        installed = None if self.environment is None else self.environment.installed()
        if self.environment is None or installed is None or installed.requirements != self.environment.requirements:
            raise self.missing()
        return self.environment.interpreter


def proven_in(environment: Environment, package: str, generation: str) -> ProvenLibrary:
    """A library for which `memtune system install` makes an environment."""
    return ProvenLibrary(package, generation, environment.command, environment=environment)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a library sent.

    Attributes:
        release: the package and its version.
        requests: the messages of each.
        failure: why the program ended, if it failed; otherwise empty.
    """

    release: str
    requests: Sequence[Messages]
    failure: str

    def proofs(self, prompts: Mapping[str, Sequence[str]]) -> list[str]:
        """A sentence for each prompt that says where it was sent, and one on the requests that have none of them.

        Args:
            prompts: place → the prompt's own parts: its whole text, or what is between the values in it.
        """
        return [*(self._proof(place, parts) for place, parts in prompts.items()), *self._others(prompts.values())]

    def _proof(self, place: str, parts: Sequence[str]) -> str:
        """Which message has all parts of a prompt, in their order."""
        for number, messages in enumerate(self.requests, start=1):
            for message in messages:
                if _holds(_content(message), parts):
                    where = message.get("part") or f"the {message['role']} message"
                    size = sum(map(len, parts))
                    return f"{place}: all {size} characters are in {where} of request {number} of {self.release}"
        why = f" ({self.failure})" if self.failure else ""
        raise ContractError(f"{place}: {self.release} does not send it as it is{why}; the export is unusable")

    def _others(self, prompts: Collection[Sequence[str]]) -> list[str]:
        """On the requests that have none of the prompts, if there are any, by how their messages begin."""
        own = [
            messages
            for messages in self.requests
            if not any(_holds(_content(message), prompt) for message in messages for prompt in prompts)
        ]
        if not own:
            return []
        counted = Counter(excerpt(" ".join(_content(messages[0]).split()), _LONGEST_OPENING) for messages in own)
        openings = ", ".join(f"{opening!r} ({count})" for opening, count in counted.items())
        return [
            f"{len(own)} of the {len(self.requests)} requests of {self.release} have none of these prompts, but its "
            f"own: {openings}"
        ]


def sent_by(
    library: ProvenLibrary,
    proof: Path,
    payload: Mapping[str, Any],
    reply: Reply,
    answer: Mapping[str, Any] | None = None,
) -> Sent:
    """Run a proof, a program that uses a library, and record the requests that it makes on loopback.

    Its environment has no key, no proxy and an empty home. Chat requests are answered by `reply`, those of a client of
    a hosted service with `answer`.

    Raises:
        ConfigError: no environment has the library, or it sent nothing.
    """
    python = library.python()
    with CaptureServer(reply, answer or {}) as server:
        endpoint = {"base_url": f"{server.url}/v1", "url": server.url, "key": "capture"}
        release, failure = _run(library, python, proof, {**payload, **endpoint})
    if not server.requests:
        raise ConfigError(f"--verify: {release} sent no request ({failure or 'it said nothing'}); {library.remedy}")
    return Sent(release, tuple(server.requests), failure)


def printed_by(library: ProvenLibrary, program: Path, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object that a program which uses a library prints last."""
    python = library.python()
    process = _ended(library, python, program, payload)
    try:
        value = json.loads(process.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        value = None
    if process.returncode != 0 or not isinstance(value, dict):
        raise ConfigError(f"{library.package} cannot be read ({_last(process.stderr)}); {library.remedy}")
    return value


def result_of(program: Path, payload: Mapping[str, Any], library: Library, environment: Environment) -> Any:
    """What a program of memtune's own prints by `print_result`; it runs here, or in an environment of this memtune.

    Raises:
        ConfigError: no environment has the library, or it belongs to another memtune, or the program failed.
        MemtuneError: what the program says.
    """
    if not library.is_here():
        environment.require()
    output = printed_by(proven_in(environment, library.package, library.generation), program, payload)
    if "error" in output:
        raise error_read(output["error"])
    return output["result"]


def print_result(call: Callable[[], Any]) -> None:
    """Print what `call` returns, or why it cannot, as `result_of` reads it."""
    try:
        output = {"result": call()}
    except MemtuneError as error:
        output = {"error": [type(error).__name__, str(error)]}
    sys.stdout.write(json.dumps(output) + "\n")


def _run(library: ProvenLibrary, python: Path, proof: Path, payload: Mapping[str, Any]) -> tuple[str, str]:
    """The release that ran, and why it failed, or nothing."""
    process = _ended(library, python, proof, payload)
    named = [line.removeprefix("release ") for line in process.stdout.splitlines() if line.startswith("release ")]
    return (named[-1] if named else library.package), ("" if process.returncode == 0 else _last(process.stderr))


def _ended(
    library: ProvenLibrary, python: Path, proof: Path, payload: Mapping[str, Any]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="memtune-proof-") as scratch:
        environment = {
            "PATH": os.defpath,
            "HOME": scratch,
            "TMPDIR": scratch,
            "PYTHONUTF8": "1",
            "NO_PROXY": "127.0.0.1",
        }
        try:
            return subprocess.run(  # noqa: S603 - our own program, without a shell
                [str(python), "-I", str(proof)],
                input=json.dumps({**payload, "scratch": scratch}),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=environment,
                cwd=scratch,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConfigError(
                f"--verify: {library.package} did not end within {SECONDS} s; export without --verify"
            ) from None
        except OSError as error:
            raise ConfigError(f"--verify: {python} cannot be started ({error.strerror}); {library.remedy}") from None


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return excerpt(lines[-1], _LONGEST_SAID) if lines else "it said nothing"


def _holds(text: str, parts: Sequence[str]) -> bool:
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part)
    return True


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
