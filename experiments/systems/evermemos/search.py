"""Searching the memory: by words and meaning, and with more queries where the first documents are not enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.systems.building_blocks.recall import as_context, fused, rankings, recorded_retrieval
from experiments.systems.building_blocks.rerank import rerank
from experiments.systems.building_blocks.structured_replies import model_step
from experiments.systems.evermemos.prompts import PROMPTS, Queries, Sufficiency
from tracing.llm.access import ModelAccess
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.prompts import Candidate
from tracing.systems.texts import Text

MAX_SUFFICIENCY_TOKENS, MAX_QUERIES_TOKENS = 512, 384


@dataclass(frozen=True, slots=True)
class Documents:
    """Entries that were found, best first, each also as context."""

    entries: Sequence[Entry]
    texts: Sequence[Text]

    def first(self, count: int) -> Documents:
        """The best of them."""
        return Documents(self.entries[:count], self.texts[:count])

    def without(self, others: Documents) -> Documents:
        """All that are not among others."""
        other_ids = {entry.id for entry in others.entries}
        positions = [at for at, entry in enumerate(self.entries) if entry.id not in other_ids]
        return Documents([self.entries[at] for at in positions], [self.texts[at] for at in positions])


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check of documents said.

    Attributes:
        context: what the answer is given; None if more is to be searched.
        key_information, missing: what the documents tell and lack.
    """

    context: Sequence[Text] | None
    key_information: Sequence[Text] = ()
    missing: Sequence[Text] = ()


class EpisodeSearch:
    """The search for one question; for the settings see `EverMemOS`."""

    def __init__(self, candidates: int, top_k: int, reranked: int, candidate: Candidate, access: ModelAccess) -> None:
        self._candidates, self._top_k, self._reranked = candidates, top_k, reranked
        self._candidate, self._access = candidate, access

    def context(self, query: Text, entries: Sequence[Entry]) -> Sequence[Text]:
        """What the answer to a question is given."""
        documents = self._documents("retrieve", query, (), entries, 2 * self._candidates)
        if not documents.entries:
            return ()
        best = self._best(query, documents)
        outcome = self.check(query, best, documents.without(best))
        if outcome.context is not None:
            return outcome.context
        queries = self.ask_more(query, outcome.key_information, outcome.missing, best.texts)
        again = self._documents("retrieve_again", query, queries, entries, max(self._reranked, self._top_k))
        return self._best(query, again).texts

    def check(self, query: Text, documents: Documents, rest: Documents) -> CheckOutcome:
        """Whether the documents shown are enough; only then they are passed on. An unusable reply says that they are.

        Args:
            query: the question.
            documents: what the model is shown.
            rest: what was found beside them and is given up if they are enough.
        """
        spec, template, model = PROMPTS["sufficiency"], self._candidate["sufficiency"], self._access.task
        texts = {"query": [query], "retrieved_docs": documents.texts, "unchecked": rest.texts}
        with model_step(spec, template, texts, Sufficiency, model, MAX_SUFFICIENCY_TOKENS) as (op, read):
            reply = read or Sufficiency(is_sufficient=True)
            op.output("is_sufficient", reply.is_sufficient, name="is_sufficient", kind="value")
            points = {
                role: [Text(text, op.output(role, text, name=role, kind="value")) for text in texts]
                for role, texts in (
                    ("key_information_found", reply.key_information_found),
                    ("missing_information", reply.missing_information),
                )
            }
            if not reply.is_sufficient:
                return CheckOutcome(None, *points.values())
            hits, best = [*documents.entries, *rest.entries], list(documents.entries)
            best = intervening().retrieved(Step("check_sufficiency", op.id), query.variable, hits, best)
            return CheckOutcome(as_context(op, best), *points.values())

    def ask_more(
        self, query: Text, key_information: Sequence[Text], missing: Sequence[Text], documents: Sequence[Text]
    ) -> list[Text]:
        """Queries for what is missing; none if the reply is unusable."""
        spec, template, model = PROMPTS["queries"], self._candidate["queries"], self._access.task
        texts = {
            "query": [query],
            "key_info": key_information,
            "missing_info": missing,
            "retrieved_docs": documents,
        }
        with model_step(spec, template, texts, Queries, model, MAX_QUERIES_TOKENS) as (op, reply):
            queries = [text.strip() for text in reply.queries] if reply is not None else []
            return [
                Text(text, op.output("queries", text, name=f"query{number}", kind="query"))
                for number, text in enumerate(dict.fromkeys(filter(None, queries)), start=1)
            ]

    def _documents(
        self, step: str, query: Text, more: Sequence[Text], entries: Sequence[Entry], count: int
    ) -> Documents:
        """Entries found by words and by meaning for a question and more queries, fused."""
        texts = [query.text, *(text.text for text in more)]

        def find() -> list[Entry]:
            return fused(rankings("hybrid", texts, entries, self._access.embedding, self._candidates))[:count]

        return Documents(*recorded_retrieval(step, {"query": [query], "queries": more}, entries, find))

    def _best(self, query: Text, documents: Documents) -> Documents:
        """The first documents, reranked if that is on."""
        if not self._reranked or not documents.entries:
            return documents.first(self._top_k)
        candidates = documents.first(max(self._reranked, self._top_k))
        template, model = self._candidate["rerank"], self._access.task
        return Documents(*rerank(query, candidates.entries, candidates.texts, template, model, self._top_k))
