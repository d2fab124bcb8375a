"""Users' conversations in memtune's own format (docs/data-format.md), as JSON lines or as tables.

JSON lines have their questions in them or in a table beside them. A folder of tables has `turns.csv`, `questions.csv`,
and `facts.csv` where facts are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from experiments.data.dataset_reader import FileReader, Ids, Reading, build_conversation
from experiments.data.own.tables import QUESTIONS, Questions, rows_in
from tracing.strict_models import StrictModel
from tracing.systems.conversations import Conversation, DialogueSession, Fact, Split, Turn, read_conversations

CSV = "csv"
TURNS, FACTS = "turns", "facts"

_REMEDY = "see docs/data-format.md"
JSONL = "jsonl"


class _TurnRow(StrictModel):
    conversation: str
    speaker: str
    text: str
    session: str = "1"
    time: str = ""
    turn: str = ""
    split: Split | None = None


class _FactRow(Fact):
    conversation: str


def read_tables(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The conversations of a folder of tables, in the order of their first turns."""
    folder = path if path.is_dir() else path.parent
    if not any((folder / f"{TURNS}.{ending}").is_file() for ending in ("csv", "jsonl")):
        reading.problem(f"{folder}: has no {TURNS}.csv; give --data the folder of the tables, {_REMEDY}")
        return
    turns: dict[str, list[tuple[str, _TurnRow]]] = defaultdict(list)
    for where, _, row in rows_in(folder, TURNS, _TurnRow, reading):
        turns[row.conversation].append((where, row))
    facts: dict[str, list[tuple[str, Fact]]] = defaultdict(list)
    for where, _, fact_row in rows_in(folder, FACTS, _FactRow, reading):
        if fact_row.conversation not in turns:
            reading.problem(
                f"{where}: conversation: {fact_row.conversation!r} is not in {TURNS}.csv; correct it, or add its turns"
            )
            continue
        facts[fact_row.conversation].append((where, Fact(**fact_row.model_dump(exclude={"conversation"}))))
    questions = Questions(folder, reading)
    if not turns:
        reading.problem(f"{folder / f'{TURNS}.csv'}: holds no turn; one turn a line is expected, {_REMEDY}")
    for name, rows in turns.items():
        yield _conversation(name, rows, facts[name], questions, reading)
    questions.unclaimed()


CSV_READER = FileReader(CSV, read_tables)


def _conversation(
    name: str,
    rows: list[tuple[str, _TurnRow]],
    facts: list[tuple[str, Fact]],
    questions: Questions,
    reading: Reading,
) -> Conversation | None:
    sessions: dict[str, list[Turn]] = {}
    times: dict[str, str] = {}
    places: dict[str, str] = {}
    for where, row in rows:
        session_turns = sessions.setdefault(row.session, [])
        turn = Turn(id=row.turn or f"{row.session}:{len(session_turns) + 1}", speaker=row.speaker, text=row.text)
        if turn.id in places:
            reading.problem(f"{where}: turn: {turn.id!r} is that of {places[turn.id]} too; give each turn its own id")
            continue
        places[turn.id] = where
        session_turns.append(turn)
        times[row.session] = times.get(row.session) or row.time
    splits = {row.split for _, row in rows if row.split is not None}
    if len(splits) > 1:
        reading.problem(f"{rows[0][0]}: split: conversation {name!r} has {' and '.join(sorted(splits))}; give it one")
    turn_ids = frozenset(places)
    sound = [fact for where, fact in facts if _fits(where, fact, turn_ids, {other.id for _, other in facts}, reading)]
    return build_conversation(
        rows[0][0],
        _REMEDY,
        reading,
        name,
        [DialogueSession(id=key, time=times[key], turns=(*turns,)) for key, turns in sessions.items()],
        questions.of(name, turn_ids, frozenset(fact.id for fact in sound)),
        split=next(iter(splits)) if len(splits) == 1 else None,
        speakers=tuple(dict.fromkeys(row.speaker for _, row in rows)),
        facts=tuple(sound),
    )


def _fits(where: str, fact: Fact, turns: frozenset[str], facts: set[str], reading: Reading) -> bool:
    if fact.turn not in turns:
        reading.problem(f"{where}: turn: {fact.turn!r} is not the id of a turn of the conversation; correct it")
        return False
    if fact.of is not None and fact.of not in facts:
        reading.problem(f"{where}: of: {fact.of!r} is not the id of a fact of the conversation; correct it")
        return False
    return True


def read_lines(path: Path, reading: Reading) -> Iterator[Conversation]:
    """The conversations of a file, or of the `.jsonl` files in a folder, with the questions beside them."""
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.jsonl")) if file.is_file() and file.stem != QUESTIONS]
    if not files:
        reading.problem(f"{path}: holds no .jsonl file; one conversation a line is expected, {_REMEDY}")
    questions = Questions.beside(path, reading)
    ids = Ids(reading)
    for file in files:
        for conversation in read_conversations(file, reading.problem):
            if ids.new("conversation", conversation.id, "id", str(file), str(file)):
                yield _with(questions, conversation, str(file), reading)
    questions.unclaimed()


JSONL_READER = FileReader(JSONL, read_lines)


def _with(questions: Questions, conversation: Conversation, where: str, reading: Reading) -> Conversation:
    turns = frozenset(turn.id for turn in conversation.turns())
    separate_questions = questions.of(conversation.id, turns, frozenset(fact.id for fact in conversation.facts))
    own_ids = {question.id for question in conversation.questions}
    for question in separate_questions:
        if question.id in own_ids:
            reading.problem(
                f"{where}: questions: {question.id!r} is in {QUESTIONS} beside it too; give each its own id"
            )
    new = tuple(question for question in separate_questions if question.id not in own_ids)
    if not new:
        return conversation
    others = {key: value for key, value in conversation if key not in ("id", "sessions", "questions")}
    questions_of_both = (*conversation.questions, *new)
    together = build_conversation(
        where, _REMEDY, reading, conversation.id, conversation.sessions, questions_of_both, **others
    )
    return together or conversation
