"""LangChain's vector stores, recorded: documents that are added, found and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.vectorstores import VectorStore

from tracing.graph.elements import Variable
from tracing.instrument.library_memories import Search, deleted, is_at_work, searching, writing, written
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded, with_subclasses
from tracing.instrument.program_steps import registry_of, step_here
from tracing.recording.recorder import Recorder


def record_vectors(instrumentation: Instrumentation) -> None:
    """Record every vector store whose class is imported by now, until the instrumentation is undone."""
    for owner in with_subclasses(VectorStore):
        for name, around in _AROUND.items():
            for method in {name, f"a{name}"} & vars(owner).keys():
                instrumentation.replace(owner, method, recorded(_outermost(around)))


def found_document(search: Search, document: Any, score: float | None = None) -> Variable:
    """A document that a search has found; without an id nobody can tell which entry it is."""
    if document.id is None:
        context = search.add_context("document", document.page_content)
    else:
        context = search.add_result(("document", document.id), document.id, document.page_content, score=score)
    return registry_of(search.recorder).keep(context, thing=document)


def _outermost(around: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves out what a store does inside one of its own methods, or for a retriever."""

    @contextmanager
    def outer(recorder: Recorder, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
        if is_at_work():
            yield lambda _: None
            return
        with around(recorder, *args, **kwargs) as on_result:
            yield on_result

    return outer


@contextmanager
def _add(recorder: Recorder, store: Any, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    documents = args[0] if args else kwargs.get("documents", kwargs.get("texts"))
    # An iterator is the store's to read.
    known = documents if isinstance(documents, Sequence) else ()
    texts = [getattr(document, "page_content", document) for document in known]
    with writing(recorder, step_here(), texts) as op:

        def on_result(ids: Sequence[str]) -> None:
            for key, text in zip(ids, texts, strict=False):
                written(recorder, op, ("document", key), key, text)

        yield on_result


@contextmanager
def _delete(recorder: Recorder, store: Any, ids: Any = None, **kwargs: Any) -> Iterator[ResultHandler]:
    with writing(recorder, step_here(), None) as op:

        def on_result(_: Any) -> None:
            for key in [ids] if isinstance(ids, str) else ids or ():
                deleted(recorder, op, ("document", key), key)

        yield on_result


@contextmanager
def _search(recorder: Recorder, store: Any, query: str, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    with searching(recorder, step_here(), query) as search:

        def on_result(documents: Any) -> None:
            for match in documents:
                document, score = match if isinstance(match, tuple) else (match, None)
                found_document(search, document, score)

        yield on_result


_AROUND: dict[str, Callable[..., Any]] = {
    "add_documents": _add,
    "add_texts": _add,
    "delete": _delete,
    "similarity_search": _search,
    "similarity_search_with_score": _search,
}
