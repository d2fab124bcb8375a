"""A row of data is enough for a library that reads prompts from a known place; what it does not send is not proven."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from own_system import OWN
from row_prompts import prompts_of

from experiments.systems.exporting.capture_server import CaptureServer
from experiments.systems.exporting.export import export, written
from experiments.systems.exporting.importing import import_prompts
from experiments.systems.exporting.library_targets import TARGETS, LibraryTarget, library_target
from experiments.systems.exporting.places import Place
from tracing.errors import ConfigError, ContractError
from tracing.systems.prompts import Contract, PromptSpec, baseline_candidate
from tracing.systems.registry import open_system

PAGE = (Path(__file__).parents[3] / "docs" / "exporting.md").read_text(encoding="utf-8")
ASK = """
import json
from urllib.request import Request, urlopen

messages = [{"role": "system", "content": prompts["ask"]["system"]}, {"role": "user", "content": said}]
urlopen(Request(f"{url}/v1/chat/completions", json.dumps({"messages": messages}).encode())).close()
settings = json.dumps({"settings": prompts["project"]}).encode()
urlopen(Request(f"{url}/v1/projects/1", settings, method="PATCH")).close()
"""
"""A program that sends what it is given, as a library might."""


def target(use: str, *beside: str) -> LibraryTarget:
    """A row for a library that is installed beside memtune; the program stands in for it."""
    row: Mapping[str, Any] = {
        "version": version("openai").partition(".")[0],
        "requirements": [f"openai=={version('openai')}", *beside],
        "use": use,
        "file": "openai.json",
        "syntax": "format",
        "places": {
            "ask.system": {"stage": "answer"},
            "instructions": {"stage": "extract", "key": "project.instructions.0.text", "beside": {"name": "memtune"}},
        },
    }
    return library_target("openai", row)()


def test_what_a_library_and_the_client_of_a_service_send_is_seen(tmp_path: Path) -> None:
    row = target(ASK)
    written(row, prompts_of(row), tmp_path)
    kept = json.loads((tmp_path / "openai.json").read_text(encoding="utf-8"))
    assert kept["project"]["instructions"][0]["name"] == "memtune"
    release = f"openai {version('openai')}"
    ask, instructions = (row.template(text, ()) for text in row.texts(str(tmp_path)).values())
    sizes = [len(text.replace("{{", "{").replace("}}", "}")) for text in (ask, instructions)]
    assert row.prove(tmp_path) == [
        f"ask.system: all {sizes[0]} characters are in the system message of request 1 of {release}",
        f"instructions: all {sizes[1]} characters are in settings.instructions.0.text of PATCH /v1/projects/1 of "
        f"request 2 of {release}",
    ]


@pytest.mark.parametrize("change", [".strip()", ".replace('Mind', 'mind')", "[:-1]"])
def test_a_text_that_is_not_sent_byte_for_byte_is_not_proven(change: str, tmp_path: Path) -> None:
    row = target(ASK.replace('prompts["ask"]["system"]', f'prompts["ask"]["system"]{change}'))
    written(row, prompts_of(row), tmp_path)
    with pytest.raises(ContractError, match=r"^ask\.system: openai .* does not send it as it is; the export is unus"):
        row.prove(tmp_path)


def test_why_a_library_sent_nothing_is_told(tmp_path: Path) -> None:
    row = target("import no_such_library")
    written(row, prompts_of(row), tmp_path)
    with pytest.raises(ConfigError, match=r"sent no request .*No module named 'no_such_library'"):
        row.prove(tmp_path)


@pytest.mark.parametrize("product", sorted(TARGETS))
def test_a_row_is_told_on_the_page_and_shows_how_it_is_used(product: str, tmp_path: Path) -> None:
    row = TARGETS[product].row
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{product}` ")]
    assert row["version"] in line
    assert f"`{row['file']}`" in line
    assert all(place.removesuffix(".*").rpartition(".")[2] in line for place in row["places"])
    compile(row["use"], product, "exec")
    assert "prompts" in row["use"]


def test_the_manifest_shows_how_the_file_is_used(tmp_path: Path) -> None:
    export(OWN, baseline_candidate(open_system(OWN).prompts), "letta", tmp_path / "out", {})
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["use"] == [
        "from letta_client import Letta",
        "",
        "Letta(api_key=key, base_url=url).agents.create(**prompts)",
    ]


def test_a_place_refuses_what_it_would_cut() -> None:
    spec = PromptSpec("note", "", "extract", Contract(frozenset()), purpose="Note.", builds=True)
    place = Place("summary_prompt", "extract", strips=True, longest=10)
    assert place.problems(spec, "Note: tea") == []
    assert place.problems(spec, "Note.\n") == ["white space around the text would be taken off: leave it out"]
    assert place.problems(spec, "Note: tea!!") == ["the text has 11 characters, at most 10 are taken there"]


def test_a_streamed_reply_has_the_whole_message() -> None:
    with CaptureServer(lambda body: {"content": "tea"}, {}) as server:
        body = json.dumps({"messages": [], "stream": True}).encode()
        request = urllib.request.Request(f"{server.url}/v1/chat/completions", body)  # noqa: S310 - loopback
        with urllib.request.urlopen(request) as reply:  # noqa: S310
            first, last = reply.read().decode().split("\n\n")[:2]
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["content"] == "tea"
    assert last == "data: [DONE]"


def test_a_users_own_file_comes_in_by_the_name_of_its_library(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"name": "ada", "system": "Answer {briefly}.", "compaction_settings": {"mode": "all"}}))
    imported = import_prompts(OWN, str(file), form="letta", mapping={"reply": "system"})
    assert imported.candidate["reply"] == "Answer {{briefly}}."
    assert imported.names == {"reply": "system"}


def test_a_library_without_what_its_proof_needs_beside_it_is_looked_for_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "none"))
    assert target(ASK).library.python() == Path(sys.executable)
    with pytest.raises(ConfigError, match="memtune system install"):
        target(ASK, "no-such-library==1.0").library.python()
