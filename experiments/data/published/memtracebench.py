"""Annotated graphs (MemTraceBench, MemEval): the public suite at its hub, and graphs as conversations with questions.

The files are smartcomment graphs with annotations; nothing in them is executed. Their labels are for
`memtune bench attribution --suite PATH`, which reads the same files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from attribution.failures import case_of
from attribution.recordings import recording_of
from experiments.data.dataset_reader import FileReader, Ids, Reading
from experiments.data.file_download import RemoteFile, http_response
from tracing.errors import DataError, TraceError
from tracing.files.whole_files import write_whole
from tracing.interchange import smartcomment
from tracing.llm.serving.weights import hub_address
from tracing.systems.conversations import Conversation

NAME, MEMEVAL = "memtracebench", "memeval"
REPOSITORY = "zjunlp/MemTraceBench"

_LISTING = "files.list"
ELSEWHERE = f"download {REPOSITORY} by other means, and give --suite its folder (or --data)"
_REMEDY = "give a smartcomment file with data.annotations"


class _LargeFile(BaseModel):
    """Where the hub keeps a large file: its SHA-256."""

    oid: str


class _Entry(BaseModel):
    """One entry of the hub's listing of a repository."""

    type: str
    path: str
    size: int = 0
    lfs: _LargeFile | None = None


_LISTED = TypeAdapter(list[_Entry])


def remote_files(folder: Path) -> tuple[RemoteFile, ...]:
    """The files of the suite, as the hub lists them; the list is kept in `folder` and asked for once."""
    listing = folder / _LISTING
    if listing.is_file():
        return _files(listing.read_bytes(), str(listing))
    url = f"{hub_address()}/api/datasets/{REPOSITORY}/tree/main?recursive=true"
    with http_response(url, ELSEWHERE) as reply:
        listed = reply.read()
    files = _files(listed, url)
    write_whole(listing, listed.decode())
    return files


def _files(listed: bytes, where: str) -> tuple[RemoteFile, ...]:
    """The graphs of a listing; paths that lead out of the folder are skipped."""
    try:
        entries = _LISTED.validate_json(listed)
    except ValidationError:
        raise DataError(f"{where}: is not a listing of files; {ELSEWHERE}") from None
    graphs = [
        entry for entry in entries if entry.type == "file" and entry.path.endswith(".json") and _inside(entry.path)
    ]
    if not graphs:
        raise DataError(f"{where}: lists no graphs; {ELSEWHERE}")
    return tuple(
        RemoteFile(
            entry.path,
            f"{hub_address()}/datasets/{REPOSITORY}/resolve/main/{quote(entry.path)}",
            entry.size,
            entry.lfs.oid if entry.lfs is not None else None,
        )
        for entry in graphs
    )


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return "\\" not in path and not path.startswith("/") and ".." not in parts


def read_labelled(path: Path, reading: Reading) -> Iterator[Conversation]:
    """A conversation of each annotated graph in a file or folder, with one question for each label."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        reading.problem(f"{path}: holds no graph; {_REMEDY}")
    ids = Ids(reading)
    for place, file in enumerate(files):
        reading.advanced(place, len(files))
        name = file.relative_to(path).with_suffix("").as_posix() if path.is_dir() else file.stem
        try:
            graph = smartcomment.load(file)
            recording = recording_of(graph, name)
        except TraceError as error:
            reading.unreadable(error, _REMEDY)
            continue
        questions = []
        for number, raw in enumerate(smartcomment.annotations_of(graph)):
            where = f"{file}: data.annotations.{number}"
            case = case_of(raw, recording, lambda problem, where=where: reading.problem(f"{where}.{problem}"))  # type: ignore[misc]
            if case is None:
                reading.problem(f"{where}: names no question and reply of the graph; correct query_id or prediction_id")
            elif not case.knows_answer:
                reading.left_out(name, "questions without a gold answer")
            elif ids.new("question", f"{name}/{case.question.id}", "query_id", where, where):
                questions.append(case.question.model_copy(update={"id": f"{name}/{case.question.id}"}))
        if not questions:
            reading.problem(f"{file}: data.annotations: has no label; {_REMEDY}")
            continue
        try:
            values = recording.conversation.model_dump() | {"questions": tuple(questions)}
            yield Conversation.model_validate(values)
        except ValidationError as error:
            reading.invalid(str(file), error, _REMEDY)


MEMEVAL_READER = FileReader(MEMEVAL, read_labelled)
MEMTRACEBENCH_READER = FileReader(NAME, read_labelled)
