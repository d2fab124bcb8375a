"""The data set of agent traces is what its description says, and its filters admit what answers their questions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.trace_memory.projects import read_projects
from benchmarks.trace_memory.quality import stored_project
from experiments.data.conformance import DatasetConformance
from experiments.data.datasets import DatasetLoader, agent_traces, conversations_of
from tracing.errors import DataError

PROJECTS = read_projects()


class TestAgentTraces(DatasetConformance):
    def loader(self) -> DatasetLoader:
        return agent_traces


def test_the_data_set_is_what_was_written_by_hand() -> None:
    assert conversations_of("agent-traces", None) == [project.conversation() for project in PROJECTS]


def test_it_has_its_size() -> None:
    acts = [turn for project in PROJECTS for _, turn in project.turns() if turn.says is None]
    assert len(acts) >= 200
    assert sum(len(project.questions) for project in PROJECTS) >= 60
    assert {project.split for project in PROJECTS} == {"train", "validation", "test"}
    for project in PROJECTS:
        assert len({turn.by for _, turn in project.turns() if turn.says is None}) >= 2, project.id
        assert len(project.sessions) >= 2, project.id
    assert len({project.entity for project in PROJECTS}) == len(PROJECTS)
    assert conversations_of("agent-traces", None)


def test_times_go_forward_within_a_project() -> None:
    for project in PROJECTS:
        times = [turn.time for _, turn in project.turns()]
        assert times == sorted(times), project.id


def test_an_answer_stands_in_the_evidence() -> None:
    for project in PROJECTS:
        turns = {turn.id: turn for _, turn in project.turns()}
        for question in project.questions:
            said = " ".join(turns[one].text() for one in question.evidence).replace("\\", "").lower()
            assert any(answer.lower() in said for answer in question.answers) or _spelled(question.answers, said), (
                question.id
            )


def _spelled(answers: tuple[str, ...], said: str) -> bool:
    """A number or date may be written otherwise, and a name inflected: the words of one answer are what counts."""
    words = Counter(said.replace(",", " ").replace(".", " ").replace('"', " ").split())
    return any(all(word in words for word in answer.lower().replace(",", " ").split()) for answer in answers)


def test_texts_are_not_made_from_a_pattern() -> None:
    """Written by hand: no two questions are the same, and hardly a tool is called in two projects."""
    asked = [question.question for project in PROJECTS for question in project.questions]
    assert len(set(asked)) == len(asked)
    tools = Counter(
        tool for project in PROJECTS for tool in {turn.tool for _, turn in project.turns() if turn.tool is not None}
    )
    assert sum(times > 1 for times in tools.values()) <= 3


def test_the_filter_of_a_question_admits_its_evidence(tmp_path: Path) -> None:
    for project in PROJECTS:
        with stored_project(project, str(tmp_path / "e.db"), None) as memory:
            for question in project.questions:
                found = {event.id for event in memory.recall(**question.filter)}
                assert set(question.evidence) <= found, question.id


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{}", "id"),
        (PROJECTS[0].model_dump_json().replace('"time":"2026-03-02 08:55"', '"time":"soon"', 1), "not a time"),
        (
            PROJECTS[0].model_dump_json(exclude_none=True).replace('"says":"Pump', '"step":"a","says":"Pump', 1),
            "exactly one",
        ),
    ],
)
def test_a_bad_row_is_one_line(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(row)
    with pytest.raises(DataError, match=rf"mine\.jsonl:1: .*{said}") as told:
        read_projects(path)
    assert "\n" not in str(told.value)
    with pytest.raises(DataError, match="cannot be read"):
        read_projects(tmp_path / "missing.jsonl")
