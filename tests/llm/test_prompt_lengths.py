"""A prompt that the server cuts without a word is found out by its count, and a healthy endpoint raises no alarm."""

from __future__ import annotations

import base64
import json
import random

import pytest

from tracing.llm.accounting.prompt_lengths import PromptLengths
from tracing.llm.accounting.token_counts import TokenCounts, estimated_tokens

_DRAWN = random.Random(3)  # noqa: S311
_WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "Ada",
    "remembers",
    "her",
    "flight",
    "to",
    "Oslo",
    "in",
    "May",
]
ENGLISH = [" ".join(_DRAWN.choices(_WORDS, k=size)) for size in (9_000, 12_000, 7_000, 5_000, 1_000)]
CHINESE = ["我下个月要搬到奥斯陆去因为我的姐姐在那里工作" * size for size in (700, 500, 300)]
CODE = [json.dumps({f"key_{n}": [n, n * 7919, "value"] for n in range(size)}, indent=4) for size in (400, 900, 1500)]
EMOJI = ["🎉😀🥳👩‍👩‍👧‍👦 " * size for size in (500, 800, 1200)]
BLANK = ["a" + " " * size + "b" + "=" * size for size in (9_000, 12_000, 20_000)]


def told(texts: list[str], counts: list[TokenCounts]) -> str | None:
    lengths = PromptLengths("m at http://h/v1")
    for text, tokens in zip(texts, counts, strict=True):
        lengths.note({"messages": [{"role": "user", "content": text}]}, tokens)
    return lengths.sentence


@pytest.mark.parametrize(
    ("texts", "counts", "words"),
    [
        (ENGLISH, [4096, 4096, 4096, 4096, 1200], "m at http://h/v1 read 4,096 tokens of prompts with 12,000 words"),
        # Whole messages are dropped: the counts differ.
        (ENGLISH, [4001, 3500, 3990, 4010, 1200], "m at http://h/v1 read 4,001 tokens of prompts with"),
        (CHINESE, [2048, 2048, 2048], "m at http://h/v1 read 2,048 tokens of prompts with"),
        # Little is cut, but from each the same is left.
        (ENGLISH[:4], [8192, 8192, 8192, 5600], "m at http://h/v1 counts 8,192 tokens for each of its prompts of"),
    ],
)
def test_a_cut_prompt_is_told_with_the_remedy(texts: list[str], counts: list[int], words: str) -> None:
    sentence = told(texts, [TokenCounts(count, 5) for count in counts])
    assert sentence is not None
    assert sentence.startswith(words)
    assert "num_ctx" in sentence


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE, CODE, EMOJI, BLANK], ids=["en", "zh", "code", "emoji", "blank"])
@pytest.mark.parametrize("share", [0.65, 1.0, 1.6])
def test_no_tokenizer_of_a_healthy_endpoint_raises_an_alarm(texts: list[str], share: float) -> None:
    """A large vocabulary makes two thirds of the tokens that are estimated, but one a word; a small one more."""
    counts = [max(round(share * estimated_tokens(text)), len(text.split())) for text in texts]
    if texts is BLANK:
        counts = [size // 80 for size in map(len, texts)]
    assert told(texts, [TokenCounts(count, 5) for count in counts]) is None


@pytest.mark.parametrize(
    "counts",
    [
        [TokenCounts(900, 5, cached=9_000), TokenCounts(900, 5, cached=12_500), TokenCounts(900, 5, cached=7_000)],
        [TokenCounts(4096, 5, estimated=True)] * 3,
    ],
)
def test_cached_tokens_beside_the_prompt_s_and_estimates_raise_no_alarm(counts: list[TokenCounts]) -> None:
    assert told(ENGLISH[:3], counts) is None


def test_pictures_raise_no_alarm() -> None:
    lengths = PromptLengths("m at http://h/v1")
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(bytes(9000)).decode()},
    }
    for text in ENGLISH[:3]:
        content = [{"type": "text", "text": text}, picture]
        lengths.note({"messages": [{"role": "user", "content": content}]}, TokenCounts(4096, 5))
    assert lengths.sentence is None
