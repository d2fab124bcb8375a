"""Memories of LangChain and LlamaIndex are memory systems by `memtune.system`, on the real packages."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tracing.systems.conformance import MemorySystemConformance

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).parents[1] / "programs"


def kept(body: Mapping[str, Any]) -> str:
    """Keeps every line said, as a summary and as facts, and answers with the end of what it reads."""
    texts = [str(message["content"]) for message in body["messages"]]
    if texts[-1].startswith("List the new facts"):
        said = [line for text in texts[:-1] for line in text.splitlines()]
        return f"<facts>{''.join(f'<fact>{line}</fact>' for line in said)}</facts>"
    if "What was said:" in texts[-1]:
        return "\n".join(re.findall(r"\w+: \w.*", texts[-1].partition("What was said:")[2]))
    return f"bassoon {' '.join(texts)[-60:]}"


@pytest.fixture(scope="class", autouse=True)
def _beside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PROGRAMS))
        yield
    for name in ("wrap_summing", "summing_program", "wrap_facts", "facts_program"):
        sys.modules.pop(name, None)


class WrappedLibrary(MemorySystemConformance):
    module = package = ""

    @pytest.fixture(autouse=True)
    def _here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip(self.package)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")  # makes a client, which reaches no server

    def system(self) -> Any:
        return importlib.import_module(self.module).system

    def reply(self, request: Mapping[str, Any]) -> str:
        return kept(request)

    def test_it_has_at_most_twenty_five_lines_outside_and_none_inside(self) -> None:
        lines = (PROGRAMS / f"{self.module}.py").read_text().splitlines()
        assert len([line for line in lines if line.strip()]) <= 25
        program = self.module.replace("wrap_", "") + "_program.py"
        assert "memtune" not in (PROGRAMS / program).read_text()


class TestTheSummaryOfLangChain(WrappedLibrary):
    module, package = "wrap_summing", "langchain_openai"


class TestTheFactsOfLlamaIndex(WrappedLibrary):
    module, package = "wrap_facts", "llama_index.llms.openai_like"


del WrappedLibrary
