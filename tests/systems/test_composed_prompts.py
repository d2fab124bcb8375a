"""Prompts that a program puts together are found as a whole, and written back where each part stands."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest

from experiments.systems.wrapped.places import place_of
from tracing.errors import ConfigError, ContractError
from tracing.systems.recorded_calls import prompt_in

PROGRAMS = {
    "plus": (
        'X = "You keep notes.\\n" + "Write each fact"\nY = X + " down."\n\n\ndef make(a, b):\n'
        '    return "Read this:\\n" + a + "\\nand write facts.\\n" + "Asked: " + b\n',
        "make",
        "Read this:\n{a}\nand write facts.\nAsked: {b}",
    ),
    "join": (
        "def make(a, b):\n    lines = [\n        'You keep notes.',\n        'Be brief.',\n"
        "        f'It is about {a}.',\n        'Asked: ' + b,\n        'Reply now.',\n    ]\n"
        "    return '\\n'.join(lines)\n",
        "make",
        "You keep notes.\nBe brief.\nIt is about {a}.\nAsked: {b}\nReply now.",
    ),
    "implicit": (
        "def make(a, b):\n    return (\n        'You keep notes. '\n"
        "        'Be brief.\\n'\n        f'Of {a}: {b}'\n    )\n",
        "make",
        "You keep notes. Be brief.\nOf {a}: {b}",
    ),
    "grown": (
        'def make(a, b):\n    prompt = "You keep notes.\\n"\n    prompt += f"They are of {a}.\\n"\n    if b:\n'
        '        prompt += "What is known already:\\n"\n        for line in b.split():\n'
        '            prompt += f"- {line}\\n"\n'
        '    prompt += "Reply briefly."\n    return prompt\n',
        "make",
        "You keep notes.\nThey are of {a}.\n{b}Reply briefly.",
    ),
    "grown at its end": (
        'def make(a, b):\n    prompt = f"You keep notes of {a}.\\n"\n    if b:\n        prompt += "Known:\\n"\n'
        '        for line in b.split():\n            prompt += f"- {line}\\n"\n    return prompt\n',
        "make",
        "You keep notes of {a}.\n{b}",
    ),
    "appended": (
        'def make(a, b):\n    lines = ["You keep notes."]\n    lines.append("They are of " + a + ".")\n'
        '    lines.extend(b.split())\n    lines += ["Be brief.", "Reply now."]\n    return "\\n".join(lines)\n',
        "make",
        "You keep notes.\nThey are of {a}.{b}Be brief.\nReply now.",
    ),
    "constants": (
        "LINES = [\n    'You keep notes of {a}.',  # who\n    'Reply as {{\"x\": 1}}.',\n]\n"
        "PROMPT = '\\n'.join(LINES)\nPROMPT += '\\nAsked: {b}'\n\n\n"
        "def make(a, b):\n    return PROMPT.format(a=a, b=b)\n",
        "PROMPT",
        'You keep notes of {a}.\nReply as {{"x": 1}}.\nAsked: {b}',
    ),
    "a list alone": (
        'LINES = ["You keep notes.", "They are of many things.", "Be brief."]\n\n\ndef make(a, b):\n'
        '    return "\\n".join(LINES)\n',
        "LINES",
        "You keep notes.\nThey are of many things.\nBe brief.",
    ),
    "a dict": (
        'PROMPTS = {\n    "note": "You keep notes.\\n"\n    "They are of %s.\\n",\n'
        '    "other": "Nothing of this.",\n}\n\n\n'
        'def make(a, b):\n    return PROMPTS["note"] % a + "Asked by " + b + ".\\n"\n',
        "make",
        "You keep notes.\nThey are of {value1}.\nAsked by {b}.\n",
    ),
    "percent": (
        'def make(a, b):\n    return "You keep %d %% notes of %s.\\n" % (3, a) + "Asked: %s" % b\n',
        "make",
        "You keep {value1} % notes of {value2}.\nAsked: {value3}",
    ),
    "template": (
        "from string import Template\n\n"
        'PROMPT = Template("\\n".join(["You keep notes of $a.", "Asked for $$5: $b"]))\n\n\n'
        "def make(a, b):\n    return PROMPT.substitute(a=a, b=b)\n",
        "PROMPT",
        "You keep notes of {a}.\nAsked for $5: {b}",
    ),
    "dedent": (
        "from textwrap import dedent\n\n"
        'PROMPT = dedent("""\n    You keep notes of {a}.\n      Reply {b}.\n    """)\n\n\n'
        "def make(a, b):\n    return PROMPT.format(a=a, b=b)\n",
        "PROMPT",
        "\nYou keep notes of {a}.\n  Reply {b}.\n",
    ),
    "a filled dedent": (
        'from textwrap import dedent\n\n\ndef make(a, b):\n    return dedent(f"""\\\n        You keep notes of {a}.\n'
        '          Reply {b}.\n        """)\n',
        "make",
        "You keep notes of {a}.\n  Reply {b}.\n",
    ),
    "a name that grows": (
        'def make(a, b):\n    text = f"You keep notes of {a}.\\n"\n    text = text + "Asked: " + b\n    return text\n',
        "make",
        "You keep notes of {a}.\nAsked: {b}",
    ),
    "brackets": (
        'PROMPT = "You keep notes of [[a]].\\nAsked: <<b>>"\n\n\n'
        'def make(a, b):\n    return PROMPT.replace("[[a]]", a).replace("<<b>>", b)\n',
        "PROMPT",
        "You keep notes of {a}.\nAsked: {b}",
    ),
    "by position": (
        'PROMPT = "You keep notes of {}.\\nAsked: {}"\n\n\ndef make(a, b):\n    return PROMPT.format(a, b)\n',
        "PROMPT",
        "You keep notes of {value1}.\nAsked: {value2}",
    ),
    "in two forms": (
        'def make(a, b):\n    return f"You keep notes of {a}, said {a!r}.\\nAsked: {b:>9} or {b}"\n',
        "make",
        "You keep notes of {a}, said {a2}.\nAsked: {b} or {b2}",
    ),
    "two marks of one name": (
        'from string import Template\n\nPROMPT = Template("You keep notes of ${a}s, of $a.\\nAsked: $b")\n\n\n'
        "def make(a, b):\n    return PROMPT.substitute(a=a, b=b)\n",
        "PROMPT",
        "You keep notes of {a}s, of {a}.\nAsked: {b}",
    ),
    "filled later": (
        'NAME = "Ann"\nPROMPT = f"You keep notes of {NAME} and {{a}}.\\nAsked: {{b}}"\n\n\n'
        "def make(a, b):\n    return PROMPT.format(a=a, b=b)\n",
        "PROMPT",
        "You keep notes of {NAME} and {a}.\nAsked: {b}",
    ),
    "langchain": (
        "from langchain_core.prompts import PromptTemplate\n\n"
        'PROMPT = PromptTemplate(template="You keep notes of {a}, as {{x}}.\\nAsked: {b}")\n\n\n'
        "def make(a, b):\n    return PROMPT.format(a=a, b=b)\n",
        "PROMPT",
        "You keep notes of {a}, as {{x}}.\nAsked: {b}",
    ),
    "a list and rows": (
        'def make(a, b):\n    return "\\n".join(["You keep notes.", "Be brief."] + a.split() + ["Asked: " + b])\n',
        "make",
        "You keep notes.\nBe brief.{a}Asked: {b}",
    ),
    "a default": (
        'def make(a, b, prompt="You keep notes of {a}.\\nAsked: {b}"):\n    return prompt.format(a=a, b=b)\n',
        "make",
        "You keep notes of {a}.\nAsked: {b}",
    ),
    "a tool in a list": (
        'TOOLS = [{"name": "save", "description": "You keep notes. Be brief."}]\n\n\n'
        'def make(a, b):\n    return TOOLS[0]["description"]\n',
        "TOOLS.save.description",
        "You keep notes. Be brief.",
    ),
    "a role": (
        'def make(a, b):\n    messages = [\n        {"role": "system", "content": "You keep notes."},\n'
        '        {"role": "user", "content": "Write down every fact that is told here: " + a},\n    ]\n'
        '    return messages[0]["content"]\n',
        "make.system",
        "You keep notes.",
    ),
}


def made(source: str, a: str, b: str) -> str:
    values: dict[str, Any] = {}
    exec(compile(source, "composed", "exec"), values)  # noqa: S102 (the test's own source)
    return str(values["make"](a, b))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))


def rewrites(text: str) -> list[str]:
    """Texts with the same placeholders in their order, with lines more, less and changed."""
    literals = [(literal, name) for literal, name, *_ in string.Formatter().parse(text)]
    replaced = text.replace("notes", "«diaries» of {{1}} \"x\" and 'y' \\ 5 %")
    longer = "".join(
        literal.replace("{", "{{").replace("}", "}}") + (f"{{{name}}}" if name else "") for literal, name in literals
    )
    return [
        replaced,
        text.replace("You keep notes", "First, be exact.\nYou keep notes, all of them"),
        text.replace("Be brief", "Be brief.\nDo not repeat yourself.\nBe polite"),
        f"{longer.rstrip()}\nAdd nothing.\n" if text.endswith("\n") else f"{longer}\nAdd nothing.",
        text.replace("You keep notes.\n", "", 1),
    ]


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_prompt_is_found_whole_and_each_rewrite_is_sent(form: str, tmp_path: Path) -> None:
    source, key, text = PROGRAMS[form]
    module = f"composed_{form.replace(' ', '_')}"
    file = tmp_path / f"{module}.py"
    file.write_text(source)
    place = place_of(f"{module}:{key}", tmp_path)
    assert place.template().text == text
    sent = made(source, "Mara", "red blue")
    filled = prompt_in(text, sent)
    assert filled is not None
    assert not (filled.before + filled.after).strip()
    for tuned in rewrites(text):
        if form == "appended" and tuned.startswith("They"):
            # Its line would be a list without elements.
            with pytest.raises(ContractError, match="between its parts; keep it there"):
                place.written(source, text, tuned)
            continue
        after = place.written(source, text, tuned)
        assert made(after, "Mara", "red blue").strip() == filled.with_text(tuned).strip()
        file.write_text(after)
        assert place.template().text.strip() == tuned.strip()
        file.write_text(source)


FILES = {
    "prompts.toml": (
        'top = 1\n[note]\nsystem = """\nYou keep notes of {a}, "\\\\d".\nBe brief."""\n'
        'user = "Asked: {b}" # one line\n[other]\nuser = "Asked: {b}"\n',
        ":note.system",
        'You keep notes of {a}, "\\d".\nBe brief.',
    ),
    "short.toml": ('[note]\nuser = "You keep notes: {b}" # one line\n', ":note.user", "You keep notes: {b}"),
    "note.md": ("---\nname: note\n---\n# Task\n\nYou keep notes of {{a}}.\n", "", "# Task\n\nYou keep notes of {a}.\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_prompt_in_a_file_is_written_back_and_all_else_of_the_file_stays(name: str, tmp_path: Path) -> None:
    """A key of TOML, and Markdown with front matter."""
    content, key, text = FILES[name]
    (tmp_path / name).write_text(content)
    place = place_of(f"{name}{key}", tmp_path)
    assert place.template().text == text
    if key:
        with pytest.raises(ConfigError, match=rf"{name}': name a key of it, {name}:key"):
            place_of(name, tmp_path)
    for tuned in rewrites(text):
        after = place.written(content, text, tuned)
        (tmp_path / name).write_text(after)
        assert place.template().text.strip() == tuned.strip()
        assert place.written(after, place.template().text, text) == content


def test_a_prompt_is_found_where_it_is_imported_from(tmp_path: Path) -> None:
    package = tmp_path / "imported_texts"
    package.mkdir()
    (package / "__init__.py").write_text("from .notes import NOTE as KEPT\nfrom . import notes\n")
    (package / "notes.py").write_text('NOTE = "You keep notes of {a}."\n')
    (tmp_path / "imported_bot.py").write_text("from imported_texts import KEPT\n")
    names = ("imported_texts:KEPT", "imported_texts:notes.NOTE", "imported_bot:KEPT")
    assert {place_of(name, tmp_path).file for name in names} == {package / "notes.py"}
    assert {place_of(name, tmp_path).template().text for name in names} == {"You keep notes of {a}."}


def test_what_cannot_be_mapped_is_told(tmp_path: Path) -> None:
    source = PROGRAMS["grown"][0]
    (tmp_path / "composed_told.py").write_text(source)
    place = place_of("composed_told:make", tmp_path)
    (line,) = place.parts()[1].values()
    assert line.startswith("composed_told:make: line 5, 'What is known already', is kept as it is: it stands in")
    assert place.problems(source, "You keep notes.\n{b}They are of {a}.\nReply briefly.") == []
    source, _, text = PROGRAMS["plus"]
    (tmp_path / "composed_order.py").write_text(source)
    place, swapped = place_of("composed_order:make", tmp_path), "Asked: {b}\nRead this and write facts: {a}"
    assert place.problems(source, text.replace("Read", "Do read")) == []
    assert place.problems(source, swapped) == ["the program puts {a}, {b} in this order, once each; keep it so"]
    (tmp_path / "composed_list.py").write_text('LINES = ["You keep notes.", "They are of many things."]\n')
    with pytest.raises(ConfigError, match="no text is written there"):
        place_of("composed_list:LINES", tmp_path).template()
