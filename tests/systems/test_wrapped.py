"""Programs that know nothing of memtune are memory systems by a few lines outside of them."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jinja2
import pytest

import memtune
from experiments.systems.wrapped.places import PromptPlace
from experiments.systems.wrapped.program_files import program_files
from experiments.systems.wrapped.templates import syntax_of_template, template_of
from optimizer.evaluation.system_steps import SystemSteps
from optimizer.objectives.asking_again import AskingAgain
from optimizer.objectives.objective import RecordedInput
from tracing.errors import ConfigError, ContractError, MemorySystemError
from tracing.recording.trace_context import trace
from tracing.systems.baseline import with_baseline
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn
from tracing.systems.description import describe
from tracing.systems.layouts import beside_reply, recorded_outputs, recorded_parts
from tracing.systems.recorded_calls import prompt_in, recorded_calls
from tracing.systems.suite.scripted_endpoint import ScriptedEndpoint

CHAT = Conversation(
    id="chat",
    speakers=("Mara", "Theo"),
    sessions=(
        DialogueSession(id="D1", turns=(Turn(id="D1:1", speaker="Theo", text="I sold the van to a florist."),)),
        DialogueSession(id="D2", turns=(Turn(id="D2:1", speaker="Theo", text="The florist sold me a cargo bike."),)),
    ),
    questions=(Question(id="q1", question="Who sold the cargo bike?", answers=("the florist",), evidence=("D2:1",)),),
)
PROGRAMS = Path(__file__).parents[1] / "programs"


def replied(body: Mapping[str, Any]) -> str:
    """Repeats what was said as notes, keeps what is new beside what is there, and answers with the end of a request."""
    text = "\n".join(str(message["content"]) for message in body["messages"])
    if "New note" in text:
        return json.dumps({"replaces": None, "note": re.findall("New note: (.*)", text)[0]})
    if "Question:" in text or "remember:" in text:
        return f"bassoon {text[-60:]}"
    said = [line for line in text.splitlines() if re.match(r"\w+: ", line)]
    return "\n".join(f"- {line}" for line in said) or text.splitlines()[-1]


@pytest.fixture(scope="class", autouse=True)
def _programs() -> Iterator[None]:
    """The programs and what wraps them can be imported, and are as they were before afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PROGRAMS))
        yield
    for name in [name for name in sys.modules if name.endswith("_program") or name.startswith("wrap_")]:
        module = sys.modules.pop(name)
        if hasattr(module, "watched"):
            module.watched.undo()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the programs need to make a client; it reaches no server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


class ConformingProgram(MemorySystemConformance):
    module = ""

    def system(self) -> Any:
        return importlib.import_module(self.module).system

    def reply(self, request: Mapping[str, Any]) -> str:
        return replied(request)


class TestTheAsyncClassWithADatabase(ConformingProgram):
    module = "wrap_notes"


class TestTheAgentOfAGraph(ConformingProgram):
    module = "wrap_agent"


class TestTheFunctionsWithPromptsInFiles(ConformingProgram):
    module = "wrap_helper"


class TestTheDiaryThatAsksAtOnceAndKeepsRandomIds(ConformingProgram):
    module = "wrap_crowd"


del ConformingProgram


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    served = ScriptedEndpoint(replied)
    yield served
    served.close()


@pytest.mark.parametrize("module", ["wrap_notes", "wrap_agent", "wrap_helper"])
def test_what_wraps_a_program_has_at_most_twenty_five_lines(module: str) -> None:
    lines = (PROGRAMS / f"{module}.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 25
    program = {"wrap_notes": "notes", "wrap_agent": "agent", "wrap_helper": "helper"}[module]
    assert "memtune" not in (PROGRAMS / f"{program}_program.py").read_text()


class TestWhatIsRecorded:
    def test_each_request_is_an_operation_of_its_prompt(self, endpoint: ScriptedEndpoint) -> None:
        system = importlib.import_module("wrap_notes").system
        assert [(listed.name, listed.stage, listed.prompt) for listed in system.operations] == [
            ("note", "extract", "note"),
            ("merge", "update", "merge"),
            ("search", "retrieve", None),
            ("answer", "answer", "answer"),
        ]
        steps, candidate = SystemSteps(system), {name: spec.text for name, spec in system.prompts.items()}
        snapshot = steps.build(endpoint.access, CHAT, candidate)
        answers = steps.answer(endpoint.access, CHAT, candidate, snapshot)
        graph, (answer,) = answers.graph, answers.answers
        before = graph.backward_slice(answer.variable or "")
        assert {operation.name for operation in before.operations.values()} == {"note", "merge", "search", "answer"}
        assert {"D1:1", "D2:1", "q1"} <= {item.name for item in before.variables.values()}
        # The requests of each prompt can be asked again with another text.
        again = AskingAgain(system.prompts, endpoint.access)
        for name, spec in system.prompts.items():
            calls = recorded_calls(name, spec.operation, graph)
            recorded = [
                RecordedInput(
                    oid,
                    spec,
                    CHAT,
                    recorded_parts(spec.layout, spec.contract.placeholders, graph.operations[oid], graph),
                    beside_reply(recorded_outputs(graph.operations[oid], graph)),
                    call=call,
                )
                for oid, call in calls.items()
            ]
            reasons = again.hindrances(name, recorded, recorded)
            assert recorded
            assert set(reasons.values()) == {None}, name

    def test_a_run_may_start_from_other_texts_than_the_programs(self, endpoint: ScriptedEndpoint) -> None:
        own = importlib.import_module("wrap_notes").system
        texts = {name: f"Be exact.\n{spec.text}" for name, spec in own.prompts.items()}
        system = with_baseline(own, texts)
        memory = system.build(CHAT, texts, endpoint.access)
        assert system.answer(memory, CHAT.questions[0], texts, endpoint.access).text
        with trace() as recorder:
            system.build(CHAT, texts, endpoint.access)
        prompts = {variable.value for variable in recorder.graph.variables.values() if variable.kind == "prompt"}
        assert prompts == {texts["note"], texts["merge"]}

    def test_a_prompt_in_no_request_is_named(self, endpoint: ScriptedEndpoint) -> None:
        module = importlib.import_module("wrap_helper")
        system = memtune.system(build=module.build, answer=module.answer, prompts={"note": "notes_program:NOTE"})
        candidate = {"note": system.prompts["note"].text}
        with pytest.raises(MemorySystemError, match=r"none of the 2 requests of a build holds note \(notes_"):
            system.build(SMALL_TALK, candidate, endpoint.access)

    def test_a_client_that_wants_a_key_may_have_any(
        self, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY")
        system = importlib.import_module("wrap_helper").system
        candidate = {name: spec.text for name, spec in system.prompts.items()}
        with pytest.raises(MemorySystemError, match=r"any text will do, such as OPENAI_API_KEY=none: .*credentials"):
            system.build(SMALL_TALK, candidate, endpoint.access)

    @pytest.mark.parametrize("later", [False, True])
    def test_what_is_promised_is_waited_for_and_what_it_raises_is_told(
        self, endpoint: ScriptedEndpoint, *, later: bool
    ) -> None:
        helper = importlib.import_module("helper_program")
        pool = ThreadPoolExecutor(1)

        def noted(folder: Path) -> None:
            helper.take_notes(["Theo: I sold the van to a florist."])
            (folder / "notes").write_text("kept")

        def build(folder: Path, conversation: Conversation) -> Any:
            return pool.submit(noted, folder / "nowhere" if conversation is SMALL_TALK else folder)

        async def answer_later(folder: Path, question: str) -> Any:
            return asyncio.ensure_future(asyncio.to_thread(helper.answer, ["The florist sold it."], question))

        def answer(folder: Path, question: str) -> Any:
            return pool.submit(helper.answer, ["The florist sold it."], question)

        prompts = {"note": "helper_program:NOTE", "reply": str(PROGRAMS / "reply.j2")}
        system = memtune.system(build=build, answer=answer_later if later else answer, prompts=prompts)
        candidate = {name: spec.text for name, spec in system.prompts.items()}
        memory = system.build(CHAT, candidate, endpoint.access)
        assert [*memory.state["files"]] == ["notes"]
        assert system.answer(memory, CHAT.questions[0], candidate, endpoint.access).text.startswith("bassoon")
        with pytest.raises(FileNotFoundError):
            system.build(SMALL_TALK, candidate, endpoint.access)
        pool.shutdown()

    @pytest.mark.parametrize("alone", [False, True])
    def test_builds_that_share_a_global_store_are_refused_or_run_alone(
        self, endpoint: ScriptedEndpoint, *, alone: bool
    ) -> None:
        """One takes the place of the store from the other, which then stores there too."""
        helper = importlib.import_module("helper_program")
        meeting = threading.Barrier(1 if alone else 2, timeout=60)
        place: dict[str, Path] = {}

        def build(folder: Path, conversation: Conversation) -> None:
            place["folder"] = folder
            notes = helper.take_notes([turn.spoken for part in conversation.sessions for turn in part.turns])
            meeting.wait()
            (place["folder"] / "notes.json").write_text(json.dumps(notes))
            meeting.wait()

        prompts = {"note": "helper_program:NOTE"}
        system = memtune.system(build=build, answer=helper.answer, prompts=prompts, alone=alone)

        def files(conversation: Conversation) -> list[str]:
            with trace(prefix="b"):
                candidate = {"note": system.prompts["note"].text}
                return [*system.build(conversation, candidate, endpoint.access).state["files"]]

        with ThreadPoolExecutor(2) as threads:
            builds = [threads.submit(files, conversation) for conversation in (CHAT, SMALL_TALK)]
        failures = [str(done.exception()) for done in builds if done.exception() is not None]
        assert [done.result() for done in builds if done.exception() is None] == [["notes.json"]] * (1 + alone)
        assert len(failures) == 1 - alone
        assert all("build left nothing in its folder" in failure and "alone=True" in failure for failure in failures)

    def test_a_prompt_of_another_stage_is_named(self, endpoint: ScriptedEndpoint) -> None:
        module = importlib.import_module("wrap_helper")
        note = {"note": "helper_program:NOTE"}
        system = memtune.system(build=module.build, answer=module.answer, prompts=note, stages={"note": "answer"})
        with pytest.raises(MemorySystemError, match=r'sent where a memory is built.*stages=\{"note": "extract"\}'):
            system.build(SMALL_TALK, {"note": system.prompts["note"].text}, endpoint.access)


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("notes_program:NOTES", "has no 'NOTES'"),
        ("nowhere:NOTE", "no such file in"),
        ("prompts.yaml:answer.user", "has no text at 'answer.user'"),
        ("helper_program:HERE", "no text is written there"),
    ],
)
def test_a_place_without_a_text_is_named(place: str, problem: str) -> None:
    module = importlib.import_module("wrap_helper")
    with pytest.raises(ConfigError, match=problem):
        memtune.system(build=module.build, answer=module.answer, prompts={"note": place})


def test_other_code_in_what_a_program_imports_makes_it_another_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "wrap_split.py": "import split.store, memtune, pytest",
        "split/__init__.py": "",
        "split/prompts.py": "",
        "split/store.py": "def keep():\n    from beside import note",
        "beside.py": "import wrap_split",
        "unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {file.relative_to(tmp_path).as_posix() for file in program_files(["wrap_split", "gone", ""])}
    assert found == files.keys() - {"unused.py"}
    program = importlib.import_module("wrap_notes").system
    assert describe(program).code == program.version is not None


def test_what_a_function_tells_people_is_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "talkative.py").write_text('''async def ask(self, notes):
    """What is said about the function, at much greater length than all of its texts."""
    log.warning("the reply of the model for %s could not be read at all: %.200r", notes)
    if not notes:
        raise ValueError("there are no notes to answer from, so nothing is asked")
    return f"Answer from these notes: {notes}"
''')
    place = PromptPlace("talkative:ask", tmp_path / "talkative.py", "ask")
    assert place.template().text == "Answer from these notes: {notes}"


@pytest.mark.parametrize(
    ("source", "syntax", "text"),
    [
        ("Notes: {notes!r:>3} {{}}", "format", "Notes: {notes} {{}}"),
        ('Reply {"a": 1} to {notes}', "replace", 'Reply {{"a": 1}} to {notes}'),
        ("Notes: {{ notes | join }} {}", "jinja", "Notes: {notes} {{}}"),
        ("{% for n in notes %}- {{ n }}\n{% endfor %}End.", "jinja", "{notes}End."),
        ("{{ a }}\n{% if b %}\nb\n{% endif %}\n\n{{ c }}{# c #}", "jinja", "{a}\n{b}\n{c}"),
        ('Reply with {"a": 1}', "plain", 'Reply with {{"a": 1}}'),
        ('As {"a": 1}, 100 %%: %(notes)s.', "percent", 'As {{"a": 1}}, 100 %: {notes}.'),
        ("Notes:\n%s\nAsked: %5.1f", "percent", "Notes:\n{value1}\nAsked: {value2}"),
        ("Keep 100 % of {notes}, not %s.", "format", "Keep 100 % of {notes}, not %s."),
        ("It is 100 % sure, whatever %s says.", "plain", "It is 100 % sure, whatever %s says."),
        ("For $$5: $notes, {}", "dollar", "For $5: {notes}, {{}}"),
    ],
)
def test_a_template_is_read_and_written_in_its_syntax(source: str, syntax: str, text: str) -> None:
    template = template_of(source)
    assert (template.syntax, template.text) == (syntax, text)
    assert template.source == source
    assert template.with_text(text).source == source


@pytest.mark.parametrize("trims", [False, True])
@pytest.mark.parametrize("topics", [[], ["boats"]])
@pytest.mark.parametrize(
    "source",
    [
        "On {{ day }}\n{% if topics %}\n{{ day }}\n{% endif %}\n\n  {% for m in said %}\n{{ m }}\n {% endfor %}\nList.",
        "On {{ day }}:\n{% if topics %}\nThese:\n{% endif %}\n{% for m in said %}\n{{ m }}\n{% endfor %}\n\nList.",
        "On {{ day }}:\n{%- for m in said -%}\n  {{ m }}\n{%- endfor -%}\n  {{- day }} is {{ day -}}\n  List.",
    ],
)
def test_a_block_is_known_in_what_is_sent_whatever_white_space_jinja_leaves_out(
    source: str, topics: list[str], *, trims: bool
) -> None:
    environment = jinja2.Environment(trim_blocks=trims, lstrip_blocks=trims)  # noqa: S701
    template, values = template_of(source), {"day": "Monday", "topics": topics, "said": ["I sail.", "I row."]}
    tuned = template.text.replace("List.", "List all.")
    filled = prompt_in(template.text, environment.from_string(source).render(values).strip())
    assert filled is not None
    written = template.with_text(tuned).source
    assert filled.with_text(tuned) == environment.from_string(written).render(values).strip()


def test_what_a_syntax_cannot_hold_is_refused() -> None:
    with pytest.raises(ContractError, match="cannot be written as jinja"):
        template_of("Notes: {{ notes }}").with_text("Notes: {notes} {{{{ x }}}}")
    with pytest.raises(ContractError, match="no part of a prompt"):
        template_of("{% include 'x' %}")
    with pytest.raises(ContractError, match="stands in an order"):
        template_of("Notes: %s, asked: %s").with_text("Asked: {value2}, notes: {value1}")
    swapped = template_of("Notes: %(notes)s, asked: %(asked)s").with_text("Asked: {asked}, 5 % of {notes}")
    assert swapped.source == "Asked: %(asked)s, 5 %% of %(notes)s"


def test_what_a_class_template_is_given_is_of_jinja_or_of_string() -> None:
    texts = ["Notes: ${notes}", "Notes: {{ notes }} for $5", "{% if a %}x{% endif %}", "Notes: {}", "No fields."]
    assert [syntax_of_template(text) for text in texts] == ["dollar", "jinja", "jinja", "jinja", None]
    template = template_of("For $$5: ${notes}x", "dollar")
    assert template.text == "For $5: {notes}x"
    assert template.with_text("{notes}: $6").source == "${notes}: $$6"


def test_a_prompt_is_taken_for_the_whole_of_a_text_if_it_can_be() -> None:
    filled = prompt_in("Notes:\n{notes}\n\nAsked: {asked}", "Notes:\na\n\nb\n\nAsked: Who?")
    assert filled is not None
    assert (filled.values, filled.before, filled.after) == ({"notes": "a\n\nb", "asked": "Who?"}, "", "")
    assert prompt_in("Notes:\n{notes}", "Other text") is None
