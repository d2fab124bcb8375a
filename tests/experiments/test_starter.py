"""What `memtune init` writes works as it stands, and the pages of reference are those of the code."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.config_reference import ROLE, config_keys
from experiments.starter.my_memory import MyMemory
from experiments.starter.starter_files import starter_config
from experiments.starter.wrapping import write_wrapping
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.conversations import Question
from tracing.systems.layouts import recorded_parts
from tracing.systems.protocol import Memory

ROOT = Path(__file__).resolve().parents[2]


class TestMyMemory(MemorySystemConformance):
    def system(self) -> MyMemory:
        return MyMemory()


def test_an_answer_from_an_empty_memory_runs_again(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    """Roles without inputs are there, empty."""
    scripted_server.script = lambda body: "unknown"
    system, access = MyMemory(), open_access(cache=False)
    candidate = {name: spec.text for name, spec in system.prompts.items()}
    question = Question(id="q", question="Who?", answers=("Rex",))
    with trace() as recorder:
        system.answer(Memory({"notes": []}), question, candidate, access)
    spec = system.prompts["answer"]
    (execution,) = recorder.graph.find_operations(name=spec.operation)
    parts = recorded_parts(spec.layout, spec.contract.placeholders, execution, recorder.graph)
    assert parts["notes"] == ()
    assert [item.text for item in parts["question"]] == ["Who?"]
    system.rerun("answer", parts, candidate, access)
    assert scripted_server.requests[0] == scripted_server.requests[1]


def init(folder: Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["init", str(folder)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_run_of_what_was_written_would_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path / "new") == 0
    config = load_config(str(tmp_path / "new" / "experiment.yaml"))
    assert (config.system, config.dataset, config.budget.minutes) == ("my_memory:MyMemory", "sample", 40)
    said = capsys.readouterr().out
    assert f"in {tmp_path / 'new'}: memtune doctor experiment.yaml, memtune run experiment.yaml --smoke" in said


def test_files_that_are_there_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my_memory.py").write_text("mine", encoding="utf-8")
    assert init(tmp_path) == 2
    assert "my_memory.py: exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["my_memory.py"]


def test_every_commented_key_with_a_value_can_be_uncommented_and_changes_nothing(tmp_path: Path) -> None:
    text = starter_config()
    bare = re.sub(r"^( *)# (\w+:(?: .+)?)$", r"\1\2", text, flags=re.MULTILINE)
    used = re.sub(r"^ *\w+:$\n(?! )", "", bare, flags=re.MULTILINE)
    file = tmp_path / "all.yaml"
    file.write_text(_without_empty(used).replace("my_memory:MyMemory", "fact-memory"), encoding="utf-8")
    found, begun = load_config(str(file)), {"system", "dataset", "limits", "models", "budget", "modules"}
    assert found.model_dump(exclude=begun) == RunConfig().model_dump(exclude=begun)
    assert len(file.read_text(encoding="utf-8").splitlines()) > 60


def _without_empty(text: str) -> str:
    """A YAML text without keys that have no value and no section below them."""
    lines = text.splitlines()
    kept: list[str] = []
    for line in reversed(lines):
        depth = len(line) - len(line.lstrip())
        below = next((len(one) - len(one.lstrip()) for one in reversed(kept) if one.strip() and "#" not in one), 0)
        if not (line.strip().endswith(":") and "#" not in line and below <= depth):
            kept.append(line)
    return "\n".join(reversed(kept)) + "\n"


def test_every_key_has_a_meaning() -> None:
    keys = list(config_keys())
    assert all(key.meaning.endswith(".") for key in keys)
    assert {key.name.split(".")[0] for key in keys} == set(RunConfig.model_fields)
    assert sum(f".{ROLE}." in key.name for key in keys) > 5


def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("page", ["configuration.md", "commands.md", "systems.md", "llms.txt"])
def test_the_pages_of_reference_are_those_of_the_code(page: str) -> None:
    there = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert there == reference().PAGES[page](), "run: python docs/reference.py"


class TestWrappingAProgram:
    @pytest.fixture(autouse=True)
    def _program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for name in ("notes_program.py", "agent_program.py"):
            shutil.copy(ROOT / "tests" / "programs" / name, tmp_path)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        yield
        for name in [name for name in sys.modules if name.endswith("_program")]:
            module = sys.modules.pop(name)
            if hasattr(module, "system") and module.system.watched is not None:
                module.system.watched.undo()

    def wrap(self, program: str) -> object:
        """Wrap a program by the command; its exit status."""
        with pytest.raises(SystemExit) as ended:
            main(["init", "--wrap", program])
        return ended.value.code

    def test_what_was_written_is_checked_and_no_other_wrapper_of_its_name(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "wrapped_notes_program.py").write_text("raise ValueError('an older one')\n")
        with pytest.raises(SystemExit) as ended:
            main(["init", "new", "--wrap", "notes_program:Memory"])
        out, err = capsys.readouterr()
        assert (ended.value.code, err) == (0, "")
        assert "the conformance suite finds nothing to mend" in out
        # From here, since the program is here: in the new folder it would not be found.
        assert "next: memtune doctor new/experiment.yaml\n" in out

    @pytest.mark.parametrize(
        ("program", "stages"),
        [
            ("notes_program:Memory", {"note": "extract", "store": "update", "answer": "answer"}),
            ("agent_program:Agent", {"extract": "extract", "system": "answer"}),
        ],
    )
    def test_what_is_guessed_is_written_told_and_checked(
        self, program: str, stages: dict[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.wrap(program) == 0
        printed = capsys.readouterr().out
        for prompt, stage in stages.items():
            assert f"guessed: prompt {prompt}, stage {stage}: " in printed
        name = f"wrapped_{program.partition(':')[0]}"
        assert load_config("experiment.yaml").system == f"{name}:system"
        assert len(Path(f"{name}.py").read_text().splitlines()) <= 25
        assert "the conformance suite finds nothing to mend" in printed or "to mend: " in printed
        if program.startswith("notes"):
            assert "to mend: " not in printed

    def test_texts_that_functions_fill_are_prompts_whatever_fills_them(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = """class Older:
    def __init__(self, folder): ...
    def add(self, text):
        return self.ask("Keep what this message tells: %s" % text)
    def answer(self, question):
        return self.ask("Answer from the notes in a word: {q}".format(q=question))
    def ask(self, text):
        return "this text is sent to nobody at all"
"""
        (tmp_path / "older_bot_program.py").write_text(source)
        self.wrap("older_bot_program:Older")
        printed = capsys.readouterr().out
        assert "guessed: prompt add, stage extract: older_bot_program:Older.add" in printed
        assert "guessed: prompt answer, stage answer: older_bot_program:Older.answer" in printed
        assert "prompt ask" not in printed

    def test_a_text_that_is_read_from_a_file_is_a_prompt_and_a_list_of_words_is_none(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = """from pathlib import Path
ANSWER_PROMPT = (Path(__file__).parent / "texts" / "answer.txt").read_text()
COMMON = set("a the and with about between".split())
class Filed:
    def __init__(self, folder): ...
    def add(self, text): ...
    def ask(self, question): ...
"""
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "answer.txt").write_text(
            "Answer from these notes alone.\n{notes}\nQuestion: {question}\n"
        )
        (tmp_path / "filed_program.py").write_text(source)
        self.wrap("filed_program:Filed")
        printed = capsys.readouterr().out
        assert "guessed: prompt answer_prompt, stage answer: texts/answer.txt" in printed
        assert "prompt common" not in printed
        assert '"answer_prompt": "texts/answer.txt"' in Path("wrapped_filed_program.py").read_text()

    @pytest.mark.parametrize(
        ("read", "is_read"),
        [
            ('tomllib.loads((HERE / "prompts.toml").read_text())["reply"]', False),
            ('one("reply")', True),
            ('TEXTS["reply"]', True),
        ],
    )
    def test_a_file_of_another_program_beside_it_is_none_of_its_prompts(
        self, read: str, *, is_read: bool, tmp_path: Path
    ) -> None:
        source = f"""import tomllib
from pathlib import Path
HERE = Path(__file__).parent
{"TEXTS = {'reply': (HERE / ('reply' + chr(46) + 'md')).read_text()}" if "TEXTS" in read else ""}
{'def one(name): return (HERE / f"{name}.md").read_text()' if "one(" in read else ""}
class Shop:
    def __init__(self, folder): ...
    def add(self, text): ...
    def ask(self, question): return {read}
"""
        (tmp_path / "reply.md").write_text("Reply to {question} as somebody who sells shoes would.\n")
        (tmp_path / "prompts.toml").write_text('reply = "Answer {question} from the notes in a few words."\n')
        name = f"shop{len(read)}_program"
        (tmp_path / f"{name}.py").write_text(source)
        places = [guess.rpartition(": ")[2] for guess in write_wrapping(f"{name}:Shop", tmp_path).guesses[1:]]
        assert places == (["reply.md"] if is_read else ["prompts.toml:reply"])

    def test_a_guessed_prompt_that_nothing_sends_is_told(self, tmp_path: Path) -> None:
        with (tmp_path / "notes_program.py").open("a") as file:
            file.write('MOOD_PROMPT = "Tell in what mood the person was who said this."\n')
        (told,) = write_wrapping("notes_program:Memory", tmp_path).unknown
        assert told.startswith("prompt mood_prompt (notes_program:MOOD_PROMPT): it is in none of the requests")
        assert "leave it out of prompts, or name the place" in told

    def test_two_prompts_of_one_name_are_both_there_and_a_module_is_parsed_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = """class Notes:
    def add(self, text): return f"Note everything of {text} that may be asked"
class Bot:
    def __init__(self, folder): self.notes = Notes()
    def add(self, text): return f"Summarize what was said here: {text}"
    def ask(self, question): ...
"""
        (tmp_path / "twice_program.py").write_text(source)
        parse, parsed = ast.parse, list[str]()

        def noting(content: Any, *more: Any, **options: Any) -> ast.AST:
            parsed.append(content)
            return parse(content, *more, **options)

        monkeypatch.setattr(ast, "parse", noting)
        assert write_wrapping("twice_program:Bot", tmp_path).guesses[1:] == [
            "prompt add, stage extract: twice_program:Notes.add",
            "prompt bot_add, stage extract: twice_program:Bot.add",
        ]
        assert parsed.count(source) == 1

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("prompts.yaml", "model: small\nanswer:\n  system: >\n    Reply to {question} from {notes} in brief\n"),
            ("prompts.json", '{"model": "small", "answer": {"system": "Reply to {question} from {notes} in brief"}}'),
        ],
    )
    def test_texts_with_keys_in_a_file_that_the_module_names_are_prompts(
        self, name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It reads the file when it is asked, so that no constant has the text."""
        source = f"""class Keyed:
    def __init__(self, folder): self.prompts = ["{name}", "broken.json"]
    def add(self, text): ...
    def ask(self, question): ...
"""
        (tmp_path / name).write_text(content)
        (tmp_path / "other.yaml").write_text("text: Nothing of this is named in the program\n")
        (tmp_path / "broken.json").write_text("{")
        module = f"keyed_program_{name[-4:]}"
        (tmp_path / f"{module}.py").write_text(source)
        self.wrap(f"{module}:Keyed")
        printed = capsys.readouterr().out
        assert f"guessed: prompt answer_system, stage answer: {name}:answer.system" in printed
        assert "other.yaml" not in printed
        assert "not known: prompts: broken.json: " in printed
        assert f'"answer_system": "{name}:answer.system"' in Path(f"wrapped_{module}.py").read_text()

    def test_the_docstring_of_a_schema_is_a_prompt_and_that_of_a_program_is_for_people(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = """from pydantic import BaseModel
class Noted(BaseModel):
    "What a speaker tells about themselves, in one line."
class Described:
    "Keeps notes of what people tell in a chat."
    def __init__(self, folder): ...
    def add(self, text): ...
    def ask(self, question): ...
"""
        (tmp_path / "described_program.py").write_text(source)
        self.wrap("described_program:Described")
        printed = capsys.readouterr().out
        assert "described_program:Noted.__doc__" in printed
        assert "Described.__doc__" not in printed

    def test_the_example_stands_as_it_was_written(self, tmp_path: Path) -> None:
        example = ROOT / "examples" / "existing_program"
        shutil.copy(example / "jotter.py", tmp_path / "jotter_program.py")
        self.wrap("jotter_program:Jotter")
        written = Path("wrapped_jotter_program.py").read_text().replace("jotter_program", "jotter")
        kept = (example / "wrapped_jotter.py").read_text()
        assert sorted(filter(None, written.splitlines())) == sorted(filter(None, kept.splitlines()))
        assert load_config(example / "experiment.yaml").system == "wrapped_jotter:system"

    @pytest.mark.parametrize(
        ("parameters", "given"),
        [
            ("speaker, text", "turn.speaker, turn.text"),
            ("text, author: str", "turn.text, turn.speaker"),
            ("role, content, tags", '"user", turn.spoken, tags=...'),
            ("number: int, text", "number=..., text=turn.spoken"),
            ("who: 'str', said, timestamp, *, top", "turn.speaker, turn.text, part.time, top=..."),
            ("text, when: datetime", "turn.spoken, when=..."),
            ("messages, date", "[turn.spoken for turn in part.turns], part.time"),
            ("*lines: str", "hear(*[turn.spoken for turn in part.turns])"),
            ("*said: str", "hear(turn.spoken)"),
            ("chat: str", 'hear("\\n".join(turn.spoken for turn in part.turns))'),
            ("dialogue", 'hear("\\n".join(turn.spoken for turn in part.turns))'),
            ("turns | [m['name'] + m['text'] for m in turns]", '[{"name": turn.speaker, "text": turn.text} for'),
            ("message: dict | message.get('role'), message['said']", '({"role": "user", "said": turn.spoken})'),
            ("chat | {n: m['content'] for n, m in enumerate(chat)}", '([{"content": turn.spoken} for turn in'),
            ("chat: list[dict] | [(m['text'], m['id']) for m in chat]", '{"role": "user", "content": turn.spoken}'),
            ("text | [m['text'] for m in self.found(text)]", "hear(turn.spoken)"),
        ],
    )
    def test_what_stands_beside_a_text_is_given_and_what_is_written_is_python(
        self, parameters: str, given: str, tmp_path: Path
    ) -> None:
        name = f"{re.sub(r'[^a-z]', '', parameters)}_program"
        parameters, _, result = parameters.partition(" | ")
        (tmp_path / f"{name}.py").write_text(
            f"""from datetime import datetime
ASK = "Answer from what was said, in a word: {{q}}"
class Listener:
    def __init__(self, path): ...
    def hear(self, {parameters}): return {result}
    def reply(self, question): ...
"""
        )
        self.wrap(f"{name}:Listener")
        written = Path(f"wrapped_{name}.py").read_text()
        ast.parse(written)
        assert given in written, written
        assert 'stages={"ask": "answer"}' in written

    def test_prompts_are_found_in_what_a_program_imports_and_their_stages_in_what_it_sends(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """In a package of prompts, in Markdown that is read by its stem; with one object for the whole process."""
        package = tmp_path / "guide_program"
        (package / "texts").mkdir(parents=True)
        (package / "__init__.py").write_text("from guide_program.memory import Guide\n")
        (package / "prompts.py").write_text(
            'EXTRACT = "List what the traveller tells about themselves."\n'
            'MANNER = "Be kind, and brief in all you say."\n'
            'EXAMPLES = [{"role": "user", "content": "I like trains more than boats."}]\n'
        )
        (package / "texts" / "answer.md").write_text(
            "---\nof: answer\n---\nAnswer the question from these notes: {{ known }}\n"
        )
        (package / "memory.py").write_text(
            "from pathlib import Path\nfrom jinja2 import Template\nfrom openai import OpenAI\n"
            "from .prompts import EXAMPLES, EXTRACT, MANNER as HOW\n\n"
            "def load(name):\n    text = (Path(__file__).parent / 'texts' / f'{name}.md').read_text()\n"
            "    return Template(text.split('---\\n', 2)[2])\n\n"
            "class Guide:\n    def __init__(self): self.known = []\n"
            "    def chat(self, *texts):\n        asked = [{'role': 'user', 'content': text} for text in texts]\n"
            "        made = OpenAI().chat.completions.create(model='m', messages=[*EXAMPLES, *asked])\n"
            "        return made.choices[0].message.content\n"
            "    def hear(self, turns: list[tuple[str, str]]):\n"
            "        self.known.append(self.chat(EXTRACT, str(turns)))\n"
            "    def tell(self, question):\n"
            "        return self.chat(HOW, load('answer').render(known=self.known), question)\n\n"
            "guide = Guide()\n"
        )
        assert self.wrap("guide_program.memory:Guide") == 0
        printed = capsys.readouterr().out
        for line in (
            "reads: Guide.hear; answers: Guide.tell; finds: nothing",
            "store: guide_program.memory:guide, in its place guide.json in a memory's folder",
            "prompt extract, stage extract: guide_program.prompts:EXTRACT",
            "prompt manner, stage answer: guide_program.prompts:MANNER",
            "prompt answer, stage answer: guide_program/texts/answer.md",
        ):
            assert f"guessed: {line}" in printed
        assert printed.count("guessed: prompt ") == 3
        assert "the conformance suite finds nothing to mend" in printed
        written = Path("wrapped_memory.py").read_text()
        assert "guide.hear([(turn.speaker, turn.text) for turn in part.turns])" in written
        assert not Path("wrapped_memory_draft.py").exists()
        for name in [name for name in sys.modules if name.startswith("guide_program")]:
            del sys.modules[name]

    def test_a_program_whose_store_is_not_seen_cannot_write_into_its_own(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = "class Own:\n    def remember(self, messages: list[dict]): ...\n    def ask(self, question): ...\n"
        (tmp_path / "own_program.py").write_text(source)
        self.wrap("own_program:Own")
        written = Path("wrapped_own_program.py").read_text()
        body = written[written.index("def build") :].splitlines()[1:4]
        assert body[0].startswith(
            '    raise NotImplementedError("let it store in `folder`, not where your program does'
        )
        assert body[1] == "    memory = Own()"
        assert 'memory.remember([{"role": "user", "content": turn.spoken} for turn in part.turns])' in written
        assert "not known: Own.remember: what a message holds is not seen; it is told role and content" in (
            capsys.readouterr().out
        )

    @pytest.mark.parametrize(
        ("parameters", "made"),
        [
            ("home: Path = Path('memories')", "Heir(home=folder)"),
            ("prompts_dir: Path = Path('texts'), spot: 'Path | None' = None", 'Heir(spot=folder / "memory.db")'),
            ("profile: str, root='memories'", 'Heir(profile="me", root=folder)'),
            ("db: sqlite3.Connection", "Heir(db=...)"),
            ("db: Database, database: 'Unknown | str' = None", 'Heir(db=..., database=folder / "memory.db")'),
        ],
    )
    def test_an_object_stores_where_the_path_says_that_its_class_or_a_base_takes(
        self, parameters: str, made: str, tmp_path: Path
    ) -> None:
        name = f"{re.sub(r'[^a-z]', '', parameters)}_program"
        (tmp_path / f"{name}.py").write_text(
            f"""import sqlite3
from pathlib import Path
class Database: ...
class Base:
    def __init__(self, {parameters}): ...
    def hear(self, chat): return [line for line in chat]
    def memories(self): ...
    def relevant(self, query): ...
    def reply(self, query): ...
class Heir(Base): ...
"""
        )
        self.wrap(f"{name}:Heir")
        written = Path(f"wrapped_{name}.py").read_text()
        assert f"memory = {made}\n" in written, written
        assert f"return {made}.reply(question)" in written
        assert "memory.hear([turn.spoken for turn in part.turns])" in written
        assert 'retrieve="relevant"' in written

    def test_names_of_models_and_what_a_script_tries_are_no_prompts(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = """MODEL = "openai/text-embedding-3-small"
URL = "https://models.invalid/openai/v1/chat/completions"
class Named:
    def __init__(self, folder): ...
    def add(self, text): return {"role": "user", "content": f"Note all that is said here: {text}"}
    def ask(self, question): ...
def main():
    Named(".").add([{"role": "user", "content": "I moved to Oslo in May."}])
"""
        (tmp_path / "named_program.py").write_text(source)
        self.wrap("named_program:Named")
        assert re.findall(r"guessed: prompt (.*)", capsys.readouterr().out) == [
            "add, stage extract: named_program:Named.add"
        ]

    def test_functions_are_found_or_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = """STORE_PATH = "data/notes.jsonl"
BASE_DIR = __import__("pathlib").Path(__file__).parent
RULES = "Keep what this tells, one line for each thing."
def jot(user_id, note: str, *, weight, day=None): ...
def tell(question: str, k=3): return f"Answer from the notes, in a few words: {question}"
"""
        (tmp_path / "jot_program.py").write_text(source)
        (tmp_path / "jots_program.py").write_text(source + "def scribble(note): ...\n")
        assert self.wrap("jots_program") == 2
        assert "no function of jots_program seems to be what reads what is said; it has jot, scribble, tell. Name" in (
            capsys.readouterr().err
        )
        assert self.wrap("jot_program:jot,tell") == 0
        printed = capsys.readouterr().out
        assert "guessed: store: jot_program:STORE_PATH, in its place notes.jsonl in a memory's folder" in printed
        assert "not known: jot_program.jot(weight=...): put in what your program gives it" in printed
        written = Path("wrapped_jot_program.py").read_text()
        assert 'jot_program.jot("me", turn.spoken, weight=...)' in written
        assert "return jot_program.tell(question)" in written
        assert 'stores={"jot_program:STORE_PATH": "notes.jsonl"}' in written
        assert '"tell": "answer"' in written

    def test_what_is_not_known_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = (
            "class Bot:\n    def __init__(self, client): ...\n    def add(self, text): ...\n    def ask(self, q): ...\n"
        )
        (tmp_path / "bot_program.py").write_text(source)
        self.wrap("bot_program:Bot")
        printed = capsys.readouterr().out
        assert "not known: Bot(client=...): put in what your program gives it" in printed
        assert "not known: Bot: where it stores is not seen; its store must be in `folder`" in printed
        assert "not known: prompts: no text in the module looks like one" in printed
        self.wrap("bot_program:add")
        assert "has no attribute 'add'" in capsys.readouterr().err
