"""`memtune run --goal cheaper`: what is typed, printed, kept, recorded and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from html_pages import Page
from memtune_command import MemtuneCommand
from mlflow import MlflowClient
from scripted_server import ScriptedServer, prompt_of

from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder

POLITE = "Whoever asks, stay as polite and patient with them as a good host would."


class Reader:
    """Knows all answers of the sample, whatever else it is told."""

    def __init__(self) -> None:
        conversations = [each for group in load_dataset(load_config(None)).splits.named().values() for each in group]
        self.known = {row.question: row.answers[0] for conversation in conversations for row in conversation.questions}

    def __call__(self, body: dict[str, Any]) -> str:
        asked = prompt_of(body).rpartition("Question: ")[2].partition("\n")[0]
        return self.known.get(asked, "unknown")


@pytest.mark.slow
def test_a_run_for_fewer_tokens_says_what_was_saved_and_how_sure_it_is(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = Reader()
    start = tmp_path / "start"
    start.mkdir()
    (start / "answer.txt").write_text(f"{POLITE}\n\nMemories:\n{{context}}\n\nQuestion: {{question}}\nAnswer:")
    memtune.configure(
        "run.yaml",
        "system: rag\nsystem_settings: {chunk_tokens: 40, top_k: 3}\nlimits: {conversations: 14, questions: 2}\n"
        "search: {settings: {top_k: [1]}}\nprompts: {start: start}\n",
    )
    code, out, err = memtune("run", "run.yaml", "--goal", "cheaper", "--margin", "0.4", "--out", "run")
    assert code == 0, err
    assert "\ncheaper: " in out
    folder = RunFolder(Path("run"))
    summary = folder.summary()
    assert (summary.verdict, summary.margin) == ("cheaper", 0.4)
    assert POLITE not in folder.prompts("champion")["answer"]
    assert summary.saving_sentence is not None
    before, after = (summary.tokens_per_question[side] for side in ("baseline", "champion"))
    assert summary.saving_sentence.startswith(
        f"A test question takes {after:,.0f} tokens, {1 - after / before:.0%} fewer than the {before:,.0f} with the "
        "baseline prompts; the difference in score is "
    )
    assert "where -0.400 is allowed." in summary.saving_sentence
    page = Page((folder.path / "report.html").read_text())
    assert summary.saving_sentence in page.text
    assert summary.settings_sentence is not None
    assert summary.settings_sentence in page.text
    assert "none was tried" not in summary.settings_sentence
    assert f"test: cheaper, score {summary.delta:+.3f}" in err
    for whose in ("prompts", "settings"):
        saved = 1 - summary.tokens_per_question[f"{whose}_alone"] / before
        assert 0 < saved < 1 - after / before
        assert f"the {whose} alone make " in summary.settings_sentence
        assert f"with {saved:.0%} fewer tokens" in summary.settings_sentence
    assert "Score and cost" in page.text
    assert page.text.count("the gain is in mean score over the baseline.") == 2
    assert "(the champion)" in page.text
    assert "The search attributed no wrong answer: fewer tokens are sought" in page.text
    assert "Blame by round" not in (folder.path / "report.html").read_text()
    # Of the comparison with another run, and in MLflow.
    code, out, _ = memtune("compare", "run", "run")
    rows = {line[:21].strip(): line[21:].split() for line in out.splitlines()}
    assert code == 0
    assert rows["tokens, champion"][0] == f"{after:,.0f}"
    assert summary.mlflow is not None
    client = MlflowClient(summary.mlflow.tracking_uri)
    assert "tried.json" in [file.path for file in client.list_artifacts(summary.mlflow.run_id)]
    metrics = client.get_run(summary.mlflow.run_id).data.metrics
    assert metrics["answers/test_difference_at_least"] == pytest.approx(summary.bound)
    # The exported prompts say what they were tuned for.
    assert memtune("export", "run", "--to", "text", "--out", "tuned")[0] == 0
    assert json.loads(Path("tuned/manifest.json").read_text())["margin"] == 0.4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--goal", "cheap"), "did you mean 'cheaper'?"),
        (("--goal", "cheaper", "--margin", "2"), "--margin: input should be less than 1"),
        (("--goal", "cheaper", "--margin", "nan"), "--margin: input should be less than 1, not nan"),
        (("--margin", "0.1"), "margin: only a run for fewer tokens has one; give goal: cheaper (--goal cheaper), or"),
        (
            ("--goal", "cheaper", "--optimizer", "gepa"),
            "goal: gepa seeks better scores; fewer tokens are sought by local-search alone: leave out optimizer",
        ),
    ],
)
def test_a_goal_that_cannot_be_sought_is_refused_before_the_first_call(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, options: tuple[str, ...], expected: str
) -> None:
    memtune.configure("run.yaml", "system: rag\nlimits: {conversations: 12, questions: 1}\n")
    code, _, err = memtune("run", "run.yaml", "--out", "run", *options)
    assert code == 2
    assert expected in err
    assert (scripted_server.asked, Path("run").exists()) == (0, False)


def test_too_few_questions_for_a_margin_and_keys_without_a_part_are_told_before_the_run(
    memtune: MemtuneCommand,
) -> None:
    memtune.configure("run.yaml", "system: rag\nlimits: {conversations: 12, questions: 1}\nproposers: [bank]\n")
    code, out, err = memtune("run", "run.yaml", "--goal", "cheaper", "--selector", "all", "--dry-run")
    assert code == 0, err
    text = " ".join(out.split())
    assert "fewer tokens are sought by cuts, not by blame or an author: without proposers, search.selector " in text
    assert "test questions do not show that a score is lower by less than 0.02, unless it rises" in text
    assert "replies that are all judged alike show it from 133 on" in text
    assert "would be found in" not in text
