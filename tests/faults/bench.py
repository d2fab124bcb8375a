"""Where runs are disturbed: a small experiment, an endpoint that misbehaves when told to, and what is checked after."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from gold_runs import outcome
from misbehaviour import KEY, Misbehaviour
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, world

from experiments.command import main
from experiments.runs.folder import RunFolder
from tracing.systems.conversations import Conversation, write_conversations

WINDOW = 6
"""Characters of the key in a row that count as a leak of it."""

LONGEST_LINE = 3000

Tried = Callable[..., None]
"""The fixture that counts what is tried: a kind, and how many of it (1)."""


def conversations(train: int = 1, validation: int = 3, test: int = 1) -> list[Conversation]:
    """So many of each split; by default the fewest that a rewrite can be accepted on."""
    splits = world(train, validation, test).named()
    return [one.model_copy(update={"split": name}) for name, group in splits.items() for one in group]


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        return self.err.rstrip("\n").rpartition("\n")[2]


def memtune(*arguments: str | Path) -> Said:
    """Run a command in this process; what no command catches is raised."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return Said(code, out.getvalue(), err.getvalue())


class Endpoint:
    """Makes a server answer as a sound model does, and misbehave as it is told.

    Attributes:
        met: names of the misbehaviours that a request met, with the role it had.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self._model = WeakModel("answer")
        self.met: list[tuple[str, str]] = []
        self.behave()
        server.script = lambda body: self._reply(self._role(body), body, self._sound(body))
        server.embed_reply = lambda body: self._reply("embedding", body, Reply())

    def behave(self) -> None:
        """Be sound from now on."""
        self._choose: Callable[[str, str], Misbehaviour | None] = lambda role, request: None

    def misbehave(self, kind: Misbehaviour, role: str, *, after: int = 0) -> None:
        """Meet every request of a role with this, but for the first `after`."""
        left = [after]

        def choose(asked: str, request: str) -> Misbehaviour | None:
            if asked != role:
                return None
            left[0] -= 1
            return kind if left[0] < 0 else None

        self._choose = choose

    def misbehave_once(self, kinds: dict[str, Sequence[Misbehaviour]]) -> None:
        """Meet each request with the next of its role's kinds when it comes first, and soundly when it comes again."""
        seen: set[str] = set()
        left = {role: list(each) for role, each in kinds.items()}

        def choose(role: str, request: str) -> Misbehaviour | None:
            if request in seen or not left.get(role):
                return None
            seen.add(request)
            return left[role].pop(0)

        self._choose = choose

    def _reply(self, role: str, body: dict[str, Any], sound: Reply) -> Reply:
        kind = self._choose(role, sha256(json.dumps(body, sort_keys=True).encode()).hexdigest())
        if kind is None:
            return sound
        self.met.append((kind.name, role))
        return kind.spoil(sound)

    @staticmethod
    def _role(body: dict[str, Any]) -> str:
        return "judge" if "You grade an answer" in prompt_of(body) else "chat"

    def _sound(self, body: dict[str, Any]) -> Reply:
        if self._role(body) == "chat":
            said = self._model(body)
            return Reply(said) if isinstance(said, str) else said
        prompt = prompt_of(body)
        gold = re.search(r"Correct answer: \"(.*?)\"", prompt)
        graded = prompt.partition("Answer to grade: ")[2].partition("\n")[0]
        right = gold is not None and gold[1] in graded and len(graded.split()) < 8
        if "response_format" in body:
            return Reply(json.dumps({"reason": "so", "label": "right" if right else "wrong"}))
        return Reply("yes" if right else "no", first_token={"yes": -0.1 if right else -4.0, "no": -1.0})


class Bench:
    """A home in which run after run is disturbed; a model's name keeps the replies of each apart."""

    def __init__(self, server: ScriptedServer, store: Path, folder: Path) -> None:
        self.endpoint, self.server, self.store, self._folder = Endpoint(server), server, store, folder
        self.home = folder / "home"
        self.home.mkdir()
        shutil.copy(store, self.home)
        self._data = folder / "data.jsonl"
        write_conversations(self._data, conversations())
        self._whole: dict[str, dict[str, Any]] = {}
        self._count = 0

    def config(self, *, metric: str = "short_contains", retries: int = 1, timeout: float = 20.0) -> Path:
        """A configuration whose models no run has used yet."""
        self._count += 1
        return self._config(f"m{self._count}", metric=metric, retries=retries, timeout=timeout)

    def _config(self, model: str, *, metric: str, retries: int, timeout: float) -> Path:
        reached = (
            f"base_url: '{self.server.base_url}', retries: {retries}, timeout_s: {timeout}, api_key: {json.dumps(KEY)}"
        )
        path = self._folder / f"{model}.yaml"
        path.write_text(
            f"dataset: jsonl\ndata: {self._data}\nsystem_settings: {{near: 0.0}}\nmetric: {metric}\n"
            f"rounds: 1\nproposals: 2\ntracking: {{traces: 1}}\n"
            f"models:\n  task: {{model: {model}, {reached}}}\n  embedding: {{model: {model}-e, {reached}}}\n"
        )
        return path

    def run(self, config: Path, *more: str) -> Said:
        """Start a run, or with `--resume latest` go on with the last one; what it says is checked for good manners."""
        said = memtune("run", config, "--home", self.home, *more)
        well_said(said)
        leaked = leaks(RunFolder.find(self.home, "latest").path) + leaks(self.home / "mlflow.db")
        assert not leaked, f"the key stands in {leaked}"
        return said

    def outcome(self, home: Path | None = None) -> dict[str, Any]:
        """What the last run of a home, by default the bench's, ended with, whatever its model was called."""
        found = outcome(RunFolder.find(home or self.home, "latest"))
        judge = found["judge"] and {**found["judge"], "model": ""}
        # What a disturbed endpoint seems to take depends on when it was disturbed.
        return {**found, "model": "", "judge": judge, "endpoints": {}}

    def whole(self, metric: str = "short_contains") -> dict[str, Any]:
        """What a run that nobody disturbs ends with; run once."""
        if metric not in self._whole:
            self.endpoint.behave()
            said = self.run(self.config(metric=metric))
            assert said.code == 0, said.err
            self._whole[metric] = self.outcome()
            # Settings come before texts, in a round of their own.
            assert any(played["accepted"] for played in self._whole[metric]["rounds"])
        return self._whole[metric]


def well_said(said: Said, codes: Collection[int] = (0, 2)) -> None:
    """Make sure that a command ended well, or with an error on one plain line, and told nobody the key."""
    everything = said.out + said.err
    assert said.code in codes, everything[-3000:]
    assert "Traceback" not in everything, everything[:3000]
    odd = [c for c in everything if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
    assert not odd, f"control characters reach the terminal: {odd[:9]!r}"
    assert not key_in(everything.encode()), "the key is told"
    if said.code == 2:
        assert said.last.startswith("memtune: "), said.err[-3000:]
        assert len(said.last) < LONGEST_LINE, f"an error of {len(said.last)} characters: {said.last[-300:]}"


def key_in(data: bytes) -> bool:
    """Whether there is the key in it, or a good part of it."""
    return any(KEY[at : at + WINDOW].encode() in data for at in range(len(KEY) - WINDOW + 1))


def leaks(place: Path) -> list[Path]:
    """The files in a folder that the key stands in."""
    files: Iterator[Path] | list[Path] = place.rglob("*") if place.is_dir() else [place]
    return [path for path in files if path.is_file() and key_in(path.read_bytes())]
