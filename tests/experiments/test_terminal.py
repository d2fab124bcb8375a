"""Whatever is printed reaches the terminal as text: what would act there is shown instead."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text
from run_shapes import record

from attribution.signals import Signal
from experiments.display.literal_console import LiteralConsole, styled
from experiments.display.progress import progress_on
from experiments.display.tables import run_view
from experiments.display.terminal import brief, one_line, say, visible
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.tuning.round import RewriteRecord, SettingsRecord

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "[tea] [/x] :smile: \x1b]8;;e\x1b\\x \x9b2J \u202ea \x07\r\x00"
SHOWN = r"[tea] [/x] :smile: \u001b]8;;e\u001b\x \u009b2J \u202ea \u0007\r\u0000"
ANY = st.text(st.characters() | st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Zp"]))


def steers(text: str) -> bool:
    return any(
        unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") and one not in "\n\t\u200c\u200d" for one in text
    )


@given(ANY)
def test_any_text_becomes_one_that_does_not_steer_and_stays_so(text: str) -> None:
    assert not steers(visible(text))
    assert visible(visible(text)) == visible(text)
    assert "\n" not in one_line(text)
    visible(text).encode()


@given(ANY)
def test_json_stays_the_same_json(text: str) -> None:
    assert json.loads(visible(json.dumps({text: text}, ensure_ascii=False))) == {text: text}


def test_an_error_that_quotes_at_length_is_short_and_ends_with_its_remedy() -> None:
    assert brief("what is wrong; the remedy") == "what is wrong; the remedy"
    long = brief(f"what is wrong: {'x' * 100_000}\n{'y' * 100_000}; the remedy")
    assert long.startswith("what is wrong: xxx")
    assert long.endswith("yyy; the remedy")
    assert "\n" not in long
    assert len(long) < 2100


def test_text_of_people_stays_as_it_is() -> None:
    for text in (
        "naïve café\tEUR\u00a05",
        "你好 👋🏽 👩\u200d👩\u200d👧",
        "می\u200cخواهم",
        "line\nline",
        r"C:\new $a_{$",
    ):
        assert visible(text) == text
    assert visible("line\r\nline") == "line\nline"


def test_a_console_prints_what_it_is_given_in_whatever_form(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    console = LiteralConsole()
    table = Table(title=HOSTILE, caption=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(styled((HOSTILE, "bold")))
    console.print(HOSTILE, table, styled(HOSTILE))
    console.print(HOSTILE, markup=True, emoji=True)
    out = capsys.readouterr().out
    assert out.count(SHOWN) == 8
    assert not steers(out)
    console.print(Text(HOSTILE))  # made without care; a `Text` drops some of it on its own
    assert not steers(capsys.readouterr().out)


def test_progress_and_status_lines_are_literal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = LiteralConsole()
    with progress_on(console) as progress:
        progress.add_task(HOSTILE, total=2)
        progress.refresh()
    with console.status(HOSTILE):
        pass
    out = capsys.readouterr().out
    assert out.count(SHOWN) >= 2
    assert "\x1b]" not in out
    assert "\x07" not in out


def test_a_run_is_watched_literally(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations and prompts have the names that a system gives them; rewrites and reasons are a model's."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\nn\n"))
    signals = [Signal(HOSTILE, None, 1.0, (0.5, 1.0), 1, 0.1, {}, (), False)]
    with run_view() as view:
        view.progress(HOSTILE, 1, 2)
        view.blame(1, signals)
        view.round(replace(record(1, accepted=True), edited=(HOSTILE,)))
        assert not view.approve(
            RewriteRecord(
                HOSTILE, HOSTILE, HOSTILE, f"after\n{HOSTILE}", 0.1, GateDecision(GateOutcome.NOT_TRIED, HOSTILE)
            ),
            "before",
        )
        assert not view.approve(SettingsRecord({"top_k": 3, "style": HOSTILE}, (), 0.5, 90, 0.1, None), "top_k 1")
    err = capsys.readouterr().err
    assert err.count(SHOWN) == 6
    assert "-top_k 1\n+top_k 3\n" in err
    assert SHOWN.partition(r"\r")[0] in err, "a rewrite is shown line by line"
    assert not steers(err)


def test_what_is_said_is_literal_on_either_stream(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    say(HOSTILE, err=True)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n")


@pytest.mark.parametrize(
    "told",
    [
        "logging.getLogger('some.library').warning('%s', text)",
        "logging.basicConfig()\ntry: raise ValueError(text)\nexcept ValueError: logging.exception(text)",
        "warnings.warn(text)",
        "raise ValueError(text)",
        "class Raised(Exception): __str__ = lambda self: text\nraise Raised",
        "def work(): raise ValueError(text)\nthread = threading.Thread(target=work)\nthread.start()\nthread.join()",
    ],
)
def test_what_libraries_and_errors_tell_is_literal(told: str) -> None:
    code = (
        "import logging, threading, warnings\n"
        "from experiments.display.terminal import say_library_messages\n"
        f"say_library_messages()\ntext = {HOSTILE!r}\n{told}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert SHOWN in done.stdout + done.stderr
    assert not steers(done.stdout + done.stderr)


def test_a_terminal_that_lacks_characters_is_no_reason_to_fail(tmp_path: Path) -> None:
    from tests.tracing.recordings import record_memory

    record_memory(tmp_path / "t.jsonl", fact="Mara lives in Zürich 👋")
    done = subprocess.run(
        [sys.executable, "-m", "experiments.command", "trace", "show", str(tmp_path / "t.jsonl")],
        cwd=ROOT,
        env={"PATH": "", "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="latin-1",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert r"Zürich \U0001f44b" in done.stdout
