"""No label is lost: rows are only appended, an undo is one of them, and many may write at once."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from experiments.annotating.labels import Assessment, CaseId, LabelError, LabelStore
from tracing.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
CASE = CaseId("trace", "case")
FIRST = Assessment("accepted", "ExtractionError", ("o1",), ("v1",), "clear", "survival")
SECOND = Assessment("corrected", "UpdateError", ("o2", "o3"), (), "", "survival")


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return LabelStore(tmp_path / "labels.sqlite", clock=lambda: 7.0)


def test_an_undo_is_a_revision_that_brings_back_what_was_said_before(store: LabelStore) -> None:
    store.add("ann", CASE, FIRST, request="1")
    store.add("ann", CASE, SECOND, request="2")
    assert [one.assessment for one in store.in_force()] == [SECOND]
    assert store.undo("ann", CASE, request="3").assessment == FIRST
    assert [one.assessment for one in store.in_force()] == [FIRST]
    store.undo("ann", CASE, request="4")
    assert store.in_force() == []
    with pytest.raises(LabelError, match="undo: there is no label of yours"):
        store.undo("ann", CASE, request="5")
    store.add("ann", CASE, SECOND, request="6")
    store.undo("ann", CASE, request="7")
    history = store.history("ann", CASE)
    assert [(one.revision, one.restores) for one in history] == [(1, 1), (2, 2), (3, 1), (4, 0), (5, 5), (6, 0)]


def test_each_annotator_has_labels_of_their_own(store: LabelStore) -> None:
    store.add("ann", CASE, FIRST, request="1")
    store.add("ben", CASE, SECOND, request="2")
    store.undo("ann", CASE, request="3")
    assert [(one.annotator, one.assessment) for one in store.in_force()] == [("ben", SECOND)]


def test_a_request_that_is_sent_twice_counts_once(store: LabelStore) -> None:
    first = store.add("ann", CASE, FIRST, request="1")
    assert store.add("ann", CASE, FIRST, request="1") == first
    assert len(store.history("ann", CASE)) == 1


def test_rows_can_neither_be_changed_nor_deleted(store: LabelStore) -> None:
    store.add("ann", CASE, FIRST, request="1")
    with sqlite3.connect(store.path) as database:
        for statement in ("UPDATE labels SET note = 'x'", "DELETE FROM labels"):
            with pytest.raises(sqlite3.IntegrityError, match="only appended"):
                database.execute(statement)


def test_of_many_threads_and_processes_no_label_is_lost(store: LabelStore) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom experiments.annotating.labels import LabelStore\n"
        "from experiments.annotating.labels import CaseId, Assessment\n"
        "store = LabelStore(Path(sys.argv[1]))\n"
        "for n in range(20):\n"
        "    store.add('ann', CaseId('trace', 'case'), Assessment('labelled', 'UpdateError'), request=f'p{n}')\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(store.path)], cwd=ROOT)

    def write(n: int) -> None:
        store.add("ann" if n % 2 else "ben", CASE, FIRST, request=str(n))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert other.wait(60) == 0
    revisions = [one.revision for one in store.history("ann", CASE)]
    assert revisions == list(range(1, 41))
    assert len(store.history("ben", CASE)) == 20


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("no database, but long enough to be looked at" * 30)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE things (one)")
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(DataError, match=r"give --labels another file"):
            LabelStore(path)
        assert path.read_bytes() == before
