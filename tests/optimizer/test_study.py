"""The study of a joint choice: what was left open has failed, and a journal that cannot be written is told."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from scripted_world import world

from attribution.cases import Case
from attribution.judging.words import Judgement
from optimizer.evaluation.evaluator import Outcome
from optimizer.racing.joint_study import JointStudy
from optimizer.racing.study_storage import StudyJournal
from tracing.errors import RunError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation

CHOICES = {"prompt answer": ("champion", "1: bank", "2: bank"), "setting top_k": (4, 8)}


def outcome(conversation: Conversation, score: float, tainted: str | None = None) -> Outcome:
    judgement = Judgement(score=score, em=score, f1=score, contains=score)
    cases = tuple(Case(conversation.id, question, "", judgement) for question in conversation.questions)
    return Outcome(conversation, () if tainted else cases, ExecutionGraph(), tainted=tainted)


TALKS = world(train=4).train
REFERENCE = [outcome(talk, 0.5) for talk in TALKS]


def test_gains_are_kept_by_conversation_and_what_was_left_open_or_has_no_score_has_failed(tmp_path: Path) -> None:
    file = tmp_path / "study.log"
    study = JointStudy("round 1", StudyJournal(file), CHOICES, REFERENCE)
    closed, broken = ({"prompt answer": "1: bank", "setting top_k": top} for top in (4, 8))
    left = {"prompt answer": "2: bank", "setting top_k": 4}
    study.report(closed, [outcome(TALKS[2], 1.0)])
    study.report(closed, [outcome(TALKS[0], 0.25), outcome(TALKS[1], 0.0, "a call failed")])
    study.close(closed, "rejected, within noise")
    study.report(broken, [outcome(TALKS[0], 0.0, "a call failed")])
    study.close(broken, "could not be scored")
    study.report(left, [outcome(TALKS[0], 1.0)])
    study.end()
    read = optuna.load_study(study_name="round 1", storage=JournalStorage(JournalFileBackend(str(file))))
    assert read.user_attrs["conversations"] == [talk.id for talk in TALKS]
    assert [each.state.name for each in read.trials] == ["COMPLETE", "COMPLETE", "FAIL", "FAIL"]
    assert (read.trials[1].params, read.trials[1].value) == (closed, 0.125)
    assert read.trials[1].intermediate_values == {2: 0.5, 0: -0.25}
    assert read.trials[1].user_attrs["gate"] == "rejected, within noise"


def test_a_journal_that_cannot_be_written_is_told_with_its_place_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"study\.log: the joint choice cannot be recorded .*; make room and continue"):
        JointStudy("round 1", StudyJournal(tmp_path / "missing" / "study.log"), CHOICES, REFERENCE)
