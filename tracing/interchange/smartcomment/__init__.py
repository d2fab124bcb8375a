"""smartcomment's JSON and MemTraceBench's annotations: `files` reads and writes them, the rest parts of a document."""

from tracing.interchange.smartcomment.files import annotations_of, graph_of_document, load, read, write
from tracing.interchange.smartcomment.writing import document_of

__all__ = ["annotations_of", "document_of", "graph_of_document", "load", "read", "write"]
