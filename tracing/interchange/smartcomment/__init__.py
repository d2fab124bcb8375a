"""smartcomment's JSON, and the `annotations` MemTraceBench adds to it, as execution graphs and back.

A node is a variable under its `full_node_id`, an operation keeps its `op_id`, and the edges of one operation become its
inputs and outputs, each in the role of the variable's kind. A variable at both ends of one operation's edges is its
output. Versions of a name are versions of a variable; a delete marker follows what it deletes.

Every element keeps the object it came from, including keys memtune does not know, as its attribute `smartcomment`, an
operation its edges as `smartcomment_edges`, and the graph the rest of the document. Values are decoded from their
`repr` (`tracing.interchange.literals`); the raw text is `attributes["smartcomment"]["value"]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.files.file_kinds import SMARTCOMMENT, likeness
from tracing.files.loading import collector_paused
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import (
    Imported,
    Troubles,
    json_pieces,
    mapping,
    parse_json,
    read_bytes,
    write_pieces,
)
from tracing.interchange.smartcomment.document_reader import RowReader
from tracing.interchange.smartcomment.document_rows import document_in
from tracing.interchange.smartcomment.document_writer import document_of, outline_of
from tracing.interchange.smartcomment.file_format import (
    KEY,
    NATIVE,
    SECTIONS,
)

__all__ = ["annotations_of", "document_of", "graph_of_document", "load", "read", "write"]


def load(path: Path) -> ExecutionGraph:
    """The graph in a smartcomment JSON file; `read` also reports repairs, and raises the same."""
    return read(path).graph


def read(path: Path) -> Imported:
    """The graph in a smartcomment JSON file, and what was repaired or left out.

    Raises:
        TraceError: the file cannot be read, or is not a smartcomment graph.
    """
    content, troubles = read_bytes(path), Troubles()
    with collector_paused():
        try:
            graph = graph_of_document(document_in(content), path, troubles)
        except (ValueError, RecursionError, TraceError):
            troubles = Troubles()
            try:
                graph = graph_of_document(parse_json(content, path, troubles), path, troubles)
            except TraceError:
                looks = likeness(path, SMARTCOMMENT, "broken")
                if not looks:
                    raise
                raise TraceError(f"{path}: is not a smartcomment graph; {looks}") from None
    return Imported(graph, troubles.lines())


def write(graph: ExecutionGraph, path: Path) -> None:
    """Write a graph as a new smartcomment JSON file; raises as `Format.write` does, and where it has too many edges."""
    write_pieces(path, json_pieces(outline_of(graph)))


def annotations_of(graph: ExecutionGraph) -> list[dict[str, Any]]:
    """MemTraceBench's annotations of an imported graph, as they are in the file; empty if there are none."""
    annotations = mapping(mapping(graph.attributes.get(KEY)).get("data")).get("annotations")
    return (
        [annotation for annotation in annotations if isinstance(annotation, dict)]
        if isinstance(annotations, list)
        else []
    )


def graph_of_document(document: Any, where: str | Path, troubles: Troubles) -> ExecutionGraph:
    """The graph that a parsed document describes.

    Args:
        document: the parsed JSON, or what `document_in` gives; its objects become part of the graph.
        where: begins error messages.
        troubles: collects repairs.

    Raises:
        TraceError: the document is not a smartcomment graph.
    """
    if not isinstance(document, dict):
        raise TraceError(f"{where}: is not a smartcomment graph but {_json_type(document)}; give a file it has written")
    data = document.get("data")
    if not isinstance(data, dict):
        raise TraceError(f"{where}: data is {_json_type(data)}, not an object of nodes, edges, operations, sessions")
    rows: dict[str, list[Any]] = {}
    for section in SECTIONS:
        rows[section] = data.get(section, [])
        if not isinstance(rows[section], list):
            raise TraceError(f"{where}: data.{section} is {_json_type(rows[section])}; it must be a list of objects")
    graph = ExecutionGraph()
    metadata = mapping(document.get("metadata"))
    own = mapping(metadata.get(NATIVE))
    if "graph" in own:
        graph.attributes.update(mapping(own["graph"]))
    else:
        rest = {key: None if key in SECTIONS else value for key, value in data.items()}
        header = {key: rest if key == "data" else value for key, value in document.items()}
        if "facts" in own:
            header["metadata"] = {key: value for key, value in metadata.items() if key != NATIVE}
            graph.attributes.update(mapping(own["facts"]))
        graph.attributes[KEY] = header
    reading = RowReader(graph, troubles)
    reading.sessions(rows["sessions"])
    reading.nodes(rows["nodes"], rows["edges"])
    reading.operations(rows["operations"], rows["edges"])
    return graph


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "missing"}
    return names.get(type(value), "a number")
