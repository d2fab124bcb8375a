"""smartcomment's JSON and MemTraceBench's annotations: `files` reads and writes them, the rest parts of a document."""

from tracing.interchange.smartcomment.document_writer import document_of
from tracing.interchange.smartcomment.files import annotations_of, graph_of_document, load, read, write

__all__ = ["annotations_of", "document_of", "graph_of_document", "load", "read", "write"]
