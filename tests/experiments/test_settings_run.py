"""A run that may tune settings: refused early where it cannot, and honest about what settings gained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from memtune_command import Command, MemtuneCommand
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from scripted_server import ScriptedServer, prompt_of

from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.running.parts import choices_of, configured_system, ready_system
from experiments.running.run_parts import check_settings
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.runs.run_settings import lasting_params
from experiments.systems.rag import Rag


@pytest.fixture
def command(memtune: MemtuneCommand) -> Command:
    """Runs memtune with `run.yaml`, to which the first argument is added."""

    def run(more: str, *arguments: str) -> tuple[int, str, str]:
        system = "" if "system:" in more else "system: rag\nsystem_settings: {chunk_tokens: 40, top_k: 1}\n"
        memtune.configure(
            "run.yaml", f"{system}limits: {{conversations: 12, questions: 3}}\nrounds: 1\nproposals: 2\n{more}\n"
        )
        return memtune(*arguments)

    return run


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "search: {settings: {top_c: [3]}}",
            "search.settings.top_c: unknown to rag; did you mean 'top_k'?; it knows chunk_tokens, overlap",
        ),
        (
            "search: {settings: {retrieval: [bm25]}}",
            "search.settings.retrieval: unknown: 'bm25'; choose",
        ),
        (
            "search: {settings: {rerank: [6]}}",
            "search.settings.rerank: with 6 the memory system has the prompts",
        ),
        ("search: {settings: {top_k: [many]}}", "search.settings.top_k: a value of type int is expected, not 'many'"),
        ("search: {settings: {top_k: [1]}}", "search.settings.top_k: nothing to choose from"),
        ("search: {settings: {top_k: []}}", "search.settings: top_k: numbers, texts or booleans to choose from are"),
        ("search: {settings: {top_k: [[2]]}}", "expected, not [[2]]; write {top_k: [3, 5]}, auto or none"),
        ("search: {settings: {top_k: [.nan]}}", "search.settings: top_k: "),
        ("search: {settings: all}", "are expected, not 'all'; write {top_k: [3, 5]}, auto or none"),
        ("optimizer: random\nsearch: {settings: {top_k: [3]}}", "add --optimizer local-search"),
    ],
)
def test_settings_that_cannot_be_tuned_are_refused_before_the_first_call_with_key_and_remedy(
    command: Command, scripted_server: ScriptedServer, more: str, expected: str
) -> None:
    code, _, err = command(more, "run", "run.yaml", "--out", "run")
    assert code == 2
    (refusal,) = (line for line in err.splitlines() if not line.startswith("note: "))
    assert expected in refusal
    assert (scripted_server.asked, Path("run").exists()) == (0, False)


@pytest.mark.parametrize(
    ("more", "options", "expected"),
    [
        ("", ("--tune", "reply"), "prompts.tune: there is no prompt 'reply'; choose from answer"),
        ("", ("--tune", "anser,bx"), "no prompt 'anser', 'bx'; did you mean 'answer'?; choose from answer"),
        (
            "prompts: {tune: []}\nsearch: {settings: none}",
            (),
            "prompts.tune: no prompt may be rewritten, so there is nothing to tune",
        ),
        (
            "prompts: {tune: []}\noptimizer: local-search,random\nsearch: {settings: {top_k: [3]}}",
            (),
            "or give search.settings and let local-search alone choose among them",
        ),
        (
            "prompts: {tune: []}\nsearch: {settings: {top_k: [3]}}",
            ("--rewrites", "answer.txt"),
            "prompts.tune: leaves out 'answer', of which --rewrites gives a text",
        ),
    ],
)
def test_a_choice_of_prompts_that_leaves_nothing_to_do_is_refused_before_the_first_call(
    command: Command, scripted_server: ScriptedServer, more: str, options: tuple[str, ...], expected: str
) -> None:
    Path("answer.txt").write_text(f"Be brief.\n{Rag.prompts['answer'].text}")
    code, _, err = command(more, "run", "run.yaml", "--out", "run", *options)
    assert code == 2
    assert expected in err
    assert (scripted_server.asked, Path("run").exists()) == (0, False)


def test_a_setting_that_the_system_does_not_tell_is_refused(command: Command, tmp_path: Path) -> None:
    """Built memories are kept by what the system says of itself."""
    (tmp_path / "untold.py").write_text(
        "from experiments.systems.rag import Rag\n\n\nclass Untold(Rag):\n    name = 'untold'\n\n"
        "    def __init__(self, *, top_k: int = 2, secretly: int = 1) -> None:\n        super().__init__(top_k=top_k)\n"
    )
    code, _, err = command(
        "system: untold:Untold\nsearch: {settings: {secretly: [2]}}", "run", "run.yaml", "--out", "run"
    )
    assert code == 2
    assert "search.settings.secretly: the memory system's `settings` do not say 2" in err


def test_the_configuration_on_the_settings_page_is_accepted() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    config = RunConfig.model_validate(yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0]))
    assert set(config.search.settings) == {"top_k", "chunk_tokens"}
    check_settings(config, ready_system(config))


def test_a_run_from_before_auto_that_tuned_no_settings_is_resumed_as_one_that_tunes_none() -> None:
    earlier, now = (RunConfig.model_validate({"search": {"settings": value}}) for value in ({}, "none"))
    assert lasting_params(earlier) == lasting_params(now)
    assert choices_of(earlier, ready_system(earlier)) == {}
    assert lasting_params(RunConfig())["search.settings"] == "auto"


def test_auto_takes_the_values_that_the_system_names_and_that_fit_the_runs_own(tmp_path: Path) -> None:
    def choices(system: str, **settings: object) -> dict[str, list[object]]:
        config = RunConfig.model_validate(
            {"system": system, "system_settings": settings, "search": {"settings": "auto"}}
        )
        opened = configured_system(config)
        check_settings(config, opened)
        return {name: list(values) for name, values in choices_of(config, opened).items()}

    assert choices("rag", top_k=3, overlap=80) == {
        "chunk_tokens": [120],
        "top_k": [2, 4, 6, 8],
        "retrieval": ["hybrid"],
    }
    for system in ("fact-memory", "mem0", "mem0@2", "evermemos", "everos", "memori", "trace-memory", "long-context"):
        assert choices(system), system


def test_auto_tunes_where_the_system_names_values_and_the_dry_run_tells_which(command: Command, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "from experiments.systems.rag import Rag\n\n\nclass Plain(Rag):\n    name = 'plain'\n    ranges = {}\n"
    )

    def settings_told(more: str) -> str:
        code, out, err = command(more, "run", "run.yaml", "--dry-run")
        assert code == 0, err
        (line,) = (line for line in out.splitlines() if line.startswith("settings that may be tuned: "))
        return line.removeprefix("settings that may be tuned: ")

    assert settings_told("").startswith(
        "chunk_tokens (60, 120, 200), top_k (2, 3, 4, 6, 8), retrieval (hybrid), beside"
    )
    assert settings_told("search: {settings: {top_k: [3]}}").startswith("top_k (3), beside")
    assert settings_told("search: {settings: none}") == "none, as search.settings says"
    assert settings_told("system: plain:Plain") == "none, since plain:Plain names no values that are worth trying"
    assert settings_told("optimizer: random") == "none, since random tunes prompts alone"
    assert settings_told("optimizer: random\nsearch: {settings: {}}") == "none, as search.settings says"


RANGING = (
    "from experiments.systems.rag import Rag\n\n\nclass Ranging(Rag):\n    name = 'ranging'\n    ranges = {}\n\n"
    "    def __init__(self, *, top_k: int = 2) -> None:\n        super().__init__(top_k=top_k)\n"
)


@pytest.mark.parametrize(
    "ranges",
    ["{'top_k': 'many'}", "{'top_k': 5}", "['top_k']", "None", "{'top_k': {3, 5}}", "{'top_k': [(3, 5)]}"],
)
def test_ranges_that_are_no_lists_of_values_are_refused_by_name(command: Command, tmp_path: Path, ranges: str) -> None:
    (tmp_path / "ranging.py").write_text(RANGING.format(ranges))
    code, _, err = command("system: ranging:Ranging", "run", "run.yaml", "--dry-run")
    assert code == 2
    assert "system: 'ranging:Ranging': ranges must map each setting to a list of values" in " ".join(err.split())


def test_values_of_ranges_that_do_not_fit_are_told_with_the_reason(command: Command, tmp_path: Path) -> None:
    (tmp_path / "ranging.py").write_text(RANGING.format("{'top_k': (3, 'many'), 'topk': (3,)}"))
    code, out, err = command("system: ranging:Ranging", "run", "run.yaml", "--dry-run")
    assert code == 0, err
    (line,) = (line for line in out.splitlines() if line.startswith("settings that may be tuned: "))
    assert line.startswith("settings that may be tuned: top_k (3), beside ")
    assert "; left out: top_k many (system_settings.top_k: " in line
    assert "topk 3 (system_settings.topk: unknown to ranging:Ranging; did you mean 'top_k'?" in line


def test_a_range_of_a_setting_that_the_system_does_not_tell_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "ranging.py").write_text(
        "from experiments.systems.rag import Rag\n\n\nclass Ranging(Rag):\n    name = 'ranging'\n"
        "    ranges = {'secretly': (2,)}\n\n"
        "    def __init__(self, *, top_k: int = 2, secretly: int = 1) -> None:\n        super().__init__(top_k=top_k)\n"
    )
    code, _, err = command("system: ranging:Ranging\nsearch: {settings: auto}", "run", "run.yaml", "--dry-run")
    assert code == 2
    assert "search.settings.secretly: the memory system's `settings` do not say 2" in err


def test_a_setting_whose_own_value_is_no_plain_value_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "unset.py").write_text(
        "from experiments.systems.rag import Rag\n\n\nclass Unset(Rag):\n    name = 'unset'\n\n"
        "    def __init__(self, *, least: float | None = None) -> None:\n        super().__init__()\n"
        "        self.least = least\n\n    @property\n    def settings(self):\n        return {'least': self.least}\n"
    )
    more = "system: unset:Unset\nsearch: {settings: {least: [0.5]}}"
    code, _, err = command(more, "run", "run.yaml", "--dry-run")
    assert code == 2
    assert (
        "search.settings.least: the run's own value is None; give it a number, text or boolean in system_settings"
        in err
    )


@pytest.fixture
def reader(scripted_server: ScriptedServer) -> None:
    """A model that answers from what it is shown, at length under the baseline prompt."""
    known: dict[str, tuple[str, list[str]]] = {}
    for group in load_dataset(load_config(None)).splits.named().values():
        for conversation in group:
            turns = {turn.id: turn.text for turn in conversation.turns()}
            for question in conversation.questions:
                known[question.question] = question.answers[0], [turns[each] for each in question.evidence]

    def answer(body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        context, _, asked = prompt.rpartition("Question: ")
        reply, evidence = known.get(asked.partition("\n")[0], ("", []))
        return reply if reply and all(text in context for text in evidence) else "no idea"

    scripted_server.script = answer


def trials_of(folder: RunFolder) -> dict[str, int]:
    storage = JournalStorage(JournalFileBackend(str(folder.path / "study.log")))
    names = optuna.get_all_study_names(storage)
    return {name: len(optuna.load_study(study_name=name, storage=storage).trials) for name in names}


@pytest.mark.slow
@pytest.mark.usefixtures("reader")
def test_a_run_shows_what_settings_gained_beside_prompts_and_resumes_without_a_call(
    command: Command, scripted_server: ScriptedServer, mlflow_home: Path, tmp_path: Path
) -> None:
    more = "search: {settings: {top_k: [3, 60]}}\n"
    code, out, err = command(more, "run", "run.yaml", "--out", "run")
    assert code == 0, err
    folder = RunFolder(Path("run"))
    found = folder.summary()
    assert {name: (each.before, each.after) for name, each in found.settings.items()} == {"top_k": (1, 60)}
    assert found.prompts_alone is not None
    assert found.prompts_alone.delta == 0
    assert found.champion["test"].score > found.baseline["test"].score
    told = found.settings_sentence
    assert told is not None
    assert "top_k 1 → 60" in told
    assert told in out
    record = found.rounds[0]
    assert record.settings_sentence is not None
    assert record.settings_sentence.startswith("of 2 other settings, top_k 60 retrieves 1.000 of what 12 questions ")
    assert f"round 1: {record.settings_sentence}" in " ".join(err.split())
    assert f"Round 1: {record.settings_sentence}." in told
    assert found.settings_alone is not None
    assert f"the settings alone make {found.settings_alone.delta:+.3f} (" in told
    report = (folder.path / "report.html").read_text()
    assert "Settings tried" in report
    assert "top_k 1 → 60" in report
    tried = {str(each.settings): each for row in found.rounds for each in row.settings}
    few, many = tried["{'top_k': 3}"], tried["{'top_k': 60}"]
    assert few.recall is not None
    assert many.recall is not None
    assert (few.recall < many.recall, (few.context_tokens or 0) < (many.context_tokens or 0)) == (True, True)
    studies = trials_of(folder)
    assert list(studies) == ["round 1"]

    client = TrackingStore(store_uri(mlflow_home), tmp_path.name, "").client
    assert found.mlflow is not None
    kept = client.get_run(found.mlflow.run_id).data
    assert (kept.metrics["settings/top_k"], kept.metrics["answers/test_prompts_alone_difference"]) == (60, 0)
    assert kept.tags["settings.top_k"] == "1 → 60"

    code, _, err = command(more, "export", "run", "--to", "rag", "--out", "exported")
    assert code == 0, err
    manifest = json.loads(Path("exported/manifest.json").read_text())
    assert manifest["settings"] == {"top_k": {"before": 1, "after": 60}}
    assert any("top_k 1 → 60" in caveat for caveat in manifest["caveats"])

    code, _, err = command(more, "eval", "run.yaml", "--prompts", "run", "--split", "validation")
    assert code == 0, err
    assert "warning: run tuned settings too; for its champion give system_settings {top_k: 60}" in err

    before = scripted_server.asked
    with (folder.path / "study.log").open("a") as journal:
        journal.write('{"op_code": 4, "wor')  # as a run leaves it that is killed while it writes
    code, _, err = command(more, "run", "--resume", "run")
    assert code == 0, err
    again = folder.summary()
    assert (again.settings, again.rounds, again.calls) == (found.settings, found.rounds, found.calls)
    assert scripted_server.asked == before
    assert trials_of(folder) == studies
