"""Commands of memtune run on an endpoint with a habit, compared with the same on a clean one."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from benchmarks.attribution_suites import SCRIPTED_SETTINGS
from benchmarks.providers.habit import Exchange, Habit
from benchmarks.scripted_model import vector_of
from benchmarks.scripted_server import CHECK, Reply, ScriptedServer, prompt_of
from benchmarks.weak_model import WeakModel
from experiments.command import main
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.systems.building_blocks.facts import FACTS_SCHEMA, facts_in
from tracing.errors import MemtuneError
from tracing.llm.access import ModelAccess
from tracing.llm.http import sdk_client
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.systems.conversations import Conversation, Fact, write_conversations

Command = Literal["run", "eval", "doctor"]
COMMANDS: tuple[Command, ...] = ("run", "eval", "doctor")
Outcome = Literal["same score", "told", "silent"]

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    "fact-memory": SCRIPTED_SETTINGS["fact-memory"],
    # So little is retrieved that vectors matter.
    "rag": {"chunk_tokens": 32, "top_k": 1},
}
_TURNS = 4
"""Of each session of the sample that are taken, so that a run is short."""
_REQUESTS = (
    "Facts as JSON.\nConversation:\n{turn}",
    "Facts as JSON, please.\nConversation:\n{turn}",
    "Facts, as JSON.\nConversation:\n{turn}",
    "Memories:\n- {turn}\nQuestion: What food does Mara's tortoise come out for?",
    "All memories:\n- {turn}\nQuestion: What food does Mara's tortoise come out for?",
)
"""What `outcome_of_calls` asks; enough of them for habits that begin later."""
_WAIT_S = 0.005
_OUTAGE_S = 0.2
_NOTE = "\n\nReply with nothing but a JSON object"
"""What a request says where no form can be enforced; the scripted model would take it for a part of the data."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, all its output, the last line of it, and the scores that it gave."""

    code: int
    output: str
    last: str
    scores: Any = None


def memtune(*arguments: str | Path) -> Ended:
    """Run a command in this process; what no command catches is raised."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    output = out.getvalue() + err.getvalue()
    return Ended(code, output, output.rstrip("\n").rpartition("\n")[2])


class Zoo:
    """A server with one habit at a time, and a home in which commands are run against it.

    Args:
        folder: empty.
    """

    def __init__(self, folder: Path) -> None:
        self.server = ScriptedServer()
        self._home, self._folder = folder / "home", folder
        self._guard = threading.Lock()
        self._used = 0
        self._clean: dict[tuple[str, str], Any] = {}
        self._have(None)
        conversations = [shortened(group[0]) for group in load_dataset(load_config(None)).splits.named().values()]
        self._data = folder / "data.jsonl"
        write_conversations(self._data, conversations)
        self._model = WeakModel(conversations)
        self._turn = next(conversations[0].turns()).text
        self._clean_calls: Any = None
        self.server.script = self.server.embed_reply = self._reply
        self.server.embed = vector_of

    def close(self) -> None:
        """Stop the server."""
        self.server.close()

    def clean_scores(self, command: Command, system: str) -> Any:
        """What a command scores on the clean endpoint; run once."""
        if (command, system) not in self._clean:
            self._have(None)
            ended = self._run(command, self._config(None, system))
            if ended.code:
                raise RuntimeError(f"{command} fails on the clean endpoint: {ended.output}")
            self._clean[command, system] = ended.scores
        return self._clean[command, system]

    def outcome(self, habit: Habit, command: Command, system: str) -> tuple[Outcome, str]:
        """What became of a habit, and why where it is silent."""
        clean = self.clean_scores(command, system)
        config = self._config(habit, system)
        self._have(habit)
        ended = self._run(command, config)
        self._have(None)
        if command == "doctor":
            return _of_doctor(habit, ended)
        outcome, why = _of_scores(habit, ended, clean)
        if outcome != "silent":
            for _ in range(habit.mended_after):
                mended = self._run(command, config)
            if mended.code or (mended.scores != clean and not habit.counted):
                return "silent", f"once it is mended: {mended.scores} where it is {clean}: {mended.last}"
        return outcome, why

    def outcome_of_calls(self, habit: Habit) -> tuple[Outcome, str]:
        """What became of a habit where a memory of facts is built and asked without a command around it.

        That is quick, but judges nothing that commands add: what is counted, remembered, or told before a run.
        """
        clean = self._calls(None)
        self._have(habit)
        try:
            replies = self._calls(habit)
        except MemtuneError as error:
            failed = Ended(2, str(error), str(error))
            return _of_scores(habit, failed, clean) if not habit.counted else ("told", "")
        finally:
            self._have(None)
        if habit.counted:
            return ("silent", "all replies are clean") if replies == clean else ("told", "")
        return _of_scores(habit, Ended(0, "", "", replies), clean)

    def _calls(self, habit: Habit | None) -> Any:
        if habit is None and self._clean_calls is not None:
            return self._clean_calls
        models = self._models_of(habit)
        roles = {role: ModelSettings.model_validate(model) for role, model in models.items()}
        with ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:
            access.check()
            replies: list[Any] = []
            for request in _REQUESTS:
                asked = [{"role": "user", "content": request.format(turn=self._turn)}]
                schema = None if "Question: " in request else FACTS_SCHEMA
                reply = access.task.chat(asked, max_tokens=40, schema=schema).text.strip()
                replies.append(facts_in(reply) if schema else reply)
            replies.append(access.embedding.embed(["Mara has a tortoise.", "It is a lorry.", "Mara has a gecko."]))
            replies.append(access.embedding.embed(["Who has a lorry?"], query=True))
        if habit is None:
            self._clean_calls = replies
        return replies

    def _have(self, habit: Habit | None) -> None:
        """Have a habit from now on."""
        self._habit, self._number, self._met = habit, Counter[bool](), Counter[str]()
        self._first_key = len(self.server.keys)

    def _run(self, command: Command, config: Path) -> Ended:
        figures = self._folder / "figures.json"
        if command == "doctor":
            return memtune("doctor", config, "--home", self._home)
        if command == "eval":
            ended = memtune("eval", config, "--prompts", "baseline", "--home", self._home, "--json", figures)
            scores = None if ended.code else json.loads(figures.read_text())["evaluated"][0]["scores"]
        else:
            ended = memtune("run", config, "--home", self._home)
            scores = None if ended.code else _scores_of(RunFolder.find(self._home, "latest"))
        return Ended(ended.code, ended.output, ended.last, scores)

    def _config(self, habit: Habit | None, system: str) -> Path:
        """A configuration whose models no command has used yet."""
        models = self._models_of(habit)
        config = {
            "system": system,
            "system_settings": dict(SYSTEMS[system]),
            "dataset": "jsonl",
            "data": str(self._data),
            "rounds": 1,
            "search": {"calls": 40},
            "tracking": {"traces": 1},
            "models": models,
        }
        path = self._folder / f"{models['task']['model']}.yaml"
        path.write_text(json.dumps(config))  # JSON is YAML
        return path

    def _models_of(self, habit: Habit | None) -> dict[Role, dict[str, Any]]:
        """Settings of models that nobody has used yet."""
        self._used += 1
        settings = {"api_key": "zoo-key", **(habit.settings if habit else {})}
        base_url = self.server.base_url.removesuffix("/v1") if "api_version" in settings else self.server.base_url
        reached = {"base_url": base_url, "retries": 3, "timeout_s": 5, **settings}
        reached = {name: value for name, value in reached.items() if value is not None}
        of_both = {name: value for name, value in reached.items() if name != "reasoning_effort"}
        return {"task": {"model": f"m{self._used}", **reached}, "embedding": {"model": f"m{self._used}-e", **of_both}}

    def _reply(self, request: dict[str, Any]) -> Reply:
        with self._guard:
            exchange = self._exchange(request)
            return exchange.clean if self._habit is None else self._habit.act(exchange)

    def _exchange(self, request: dict[str, Any]) -> Exchange:
        chat = "messages" in request
        small = request["messages"] == CHECK if chat else request["input"] == ["hello"]
        key = json.dumps(request, sort_keys=True)
        clean = Reply(self._text(request)) if chat else Reply()
        keys = list(dict.fromkeys(self.server.keys[self._first_key :]))
        number = keys.index(self.server.keys[-1])
        exchange = Exchange(request, clean, self._number[chat], self._met[key], number, small)
        self._number[chat] += not small
        self._met[key] += 1
        return exchange

    def _text(self, request: dict[str, Any]) -> str:
        prompt, _, _ = prompt_of(request).partition(_NOTE)
        return self._model.reply(prompt, json.dumps(request.get("response_format") or {}))


def shortened(conversation: Conversation) -> Conversation:
    """The first turns of each session, with the facts and questions that need no others."""
    sessions = tuple(session.model_copy(update={"turns": session.turns[:_TURNS]}) for session in conversation.sessions)
    turns = {turn.id for session in sessions for turn in session.turns}
    facts: dict[str | None, Fact] = {}
    for fact in conversation.facts:
        if fact.turn in turns and (fact.of is None or fact.of in facts):
            facts[fact.id] = fact
    return conversation.model_copy(
        update={
            "sessions": sessions,
            "facts": tuple(facts.values()),
            "questions": tuple(
                question.model_copy(update={"near_miss": None})
                for question in conversation.questions
                if turns.issuperset(question.evidence) and question.fact in (None, *facts)
            ),
        }
    )


def _scores_of(folder: RunFolder) -> Any:
    summary = folder.summary().as_json()
    return {name: summary[name] for name in ("verdict", "baseline", "champion", "delta")}, folder.prompts("champion")


def _of_doctor(habit: Habit, ended: Ended) -> tuple[Outcome, str]:
    if habit.fails and (ended.code or habit.doctor):
        return _told(habit.fails, ended.output) if ended.code else ("silent", "nothing is broken")
    return ("same score", "") if ended.code == 0 else ("silent", ended.output[-1000:])


def _of_scores(habit: Habit, ended: Ended, clean: Any) -> tuple[Outcome, str]:
    if not ended.code and ended.scores == clean:
        return "same score", ""
    if habit.fails:
        return _told(habit.fails, ended.last) if ended.code else ("silent", f"it ends well, with {ended.scores}")
    if ended.code:
        return "silent", ended.last
    if habit.counted:
        return _told(habit.counted, ended.output)
    return "silent", f"{ended.scores} where it is {clean}"


def _told(patterns: tuple[str, ...], output: str) -> tuple[Outcome, str]:
    missing = [pattern for pattern in patterns if not re.search(pattern, output, re.IGNORECASE)]
    return ("silent", f"no {missing[0]!r} in: {output[-1500:]}") if missing else ("told", "")


@contextlib.contextmanager
def models_alone() -> Iterator[None]:
    """Waits between attempts are short inside, and what has nothing to do with models is not done."""
    with contextlib.ExitStack() as patches:
        for place, value in {
            "openai._base_client.INITIAL_RETRY_DELAY": _WAIT_S,
            "tracing.llm.http.endpoint.ASK_AGAIN_S": _WAIT_S,
            "tracing.llm.http.endpoint.OUTAGE_WAIT_S": _WAIT_S,
            "tracing.llm.http.endpoint.OUTAGE_S": _OUTAGE_S,
            "tracing.llm.http.sdk_client._certificates": functools.cache(sdk_client._certificates),
            "experiments.mlflow_tracking.outbox.Outbox._pass_on": _send_nothing,
            "experiments.running.run.render_report": lambda report: "",
            "experiments.doctor.check_packages": lambda: (),
            "experiments.doctor.check_extras": lambda: (),
        }.items():
            patches.enter_context(patch(place, value))
        yield


def _send_nothing(outbox: Any, **_: Any) -> None:
    outbox._waiting.clear()
