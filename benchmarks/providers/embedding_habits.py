"""What providers' endpoints do with requests for embeddings."""

from __future__ import annotations

import base64
import struct
from typing import Any

from benchmarks.providers.habit import Habit, always, at_first, body, embeddings, error, later, refusal, rows
from benchmarks.scripted_server import Reply


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _row(**fields: Any) -> Any:
    return rows(lambda given: [{**row, **fields} for row in given])


_count = rows(lambda given: given[1:])

HABITS = (
    Habit(
        "gemini: rows without an index",
        rows(lambda given: [{"object": "embedding", "embedding": row["embedding"]} for row in given]),
    ),
    Habit("rows out of order, with an index", rows(lambda given: given[::-1])),
    Habit(
        "base64 though floats are asked for",
        rows(lambda given: [{**row, "embedding": _packed(row["embedding"])} for row in given]),
    ),
    Habit(
        "vectors that are not of length 1",
        rows(lambda given: [{**row, "embedding": [7 * x for x in row["embedding"]]} for row in given]),
    ),
    Habit(
        "vectors of whole numbers",
        rows(lambda given: [{**row, "embedding": [0 if x == 0 else x for x in row["embedding"]]} for row in given]),
    ),
    Habit("embeddings without usage", embeddings(body(lambda answer: {"data": answer["data"]}))),
    Habit(
        "embeddings with usage in texts",
        embeddings(body(lambda answer: {**answer, "usage": {"prompt_tokens": "3", "total_tokens": 3.0}})),
    ),
    Habit("a count of rows that is wrong, once", at_first(_count)),
    Habit("rows of nulls, once", at_first(_row(embedding=None))),
    Habit(
        "a dimension that changes",
        later(rows(lambda given: [{**row, "embedding": row["embedding"][:7]} for row in given]), 1),
        fails=("have 7 numbers", "base_url"),
        doctor=False,
        mended_after=2,
    ),
    Habit("a count of rows that is wrong", _count, fails=("embeddings? for",), doctor=True),
    Habit("rows numbered from 1", rows(lambda given: [{**row, "index": row["index"] + 1} for row in given])),
    Habit("rows all numbered 0", _row(index=0), fails=("numbered",), doctor=False),
    Habit(
        "vectors of NaN",
        rows(lambda given: [{**row, "embedding": [float("nan")] * 4} for row in given]),
        fails=("NaN",),
    ),
    Habit(
        "vectors of nulls",
        rows(lambda given: [{**row, "embedding": [None] * 4} for row in given]),
        fails=("embedding",),
    ),
    Habit(
        "an endpoint without embeddings, 404",
        embeddings(always(refusal(404, b"404 page not found"))),
        fails=("404", "models.embedding"),
    ),
    Habit(
        "an endpoint without embeddings, 501",
        embeddings(always(error(501, "This server does not support embeddings. Start it with `--embeddings`"))),
        fails=("does not support embeddings", "models.embedding"),
    ),
    Habit(
        "a chat model asked for embeddings, 400",
        embeddings(always(error(400, "This model does not support embeddings"))),
        fails=("does not support embeddings",),
    ),
    Habit(
        "an empty text is refused",
        embeddings(lambda e: error(400, "input cannot be an empty string") if "" in e.body["input"] else e.clean),
    ),
    Habit(
        "a text that is too long for the model",
        later(
            embeddings(
                always(
                    error(
                        400, "This model's maximum context length is 512 tokens, however you requested 600", code=None
                    )
                )
            ),
            0,
        ),
        fails=("maximum context length",),
        doctor=False,
    ),
    Habit("no connection stays open", embeddings(lambda e: Reply(headers={"Connection": "close"}))),
)
