"""A tutor that keeps a profile of its pupil: functions, LiteLLM, Jinja2 prompts in a YAML file, replies as a stream."""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import litellm
import yaml
from jinja2 import Template

HERE = Path(__file__).parent
STORE = Path("profiles")


@lru_cache
def prompts() -> dict[str, str]:
    return yaml.safe_load((HERE / "tutor.yaml").read_text())


def complete(name: str, **values: object) -> list[dict[str, str]]:
    return [{"role": "user", "content": Template(prompts()[name]).render(**values)}]


async def learn(pupil: str, lines: list[str]) -> str:
    """Rewrite the pupil's profile with what `lines` tell."""
    path = STORE / f"{pupil}.json"
    profile = json.loads(path.read_text())["profile"] if path.exists() else ""
    response = await litellm.acompletion(
        model="openai/gpt-4.1-mini",
        messages=complete("profile", profile=profile, lines=lines),
        temperature=0,
        max_tokens=400,
    )
    text = response.choices[0].message.content
    STORE.mkdir(exist_ok=True)
    path.write_text(json.dumps({"profile": text}))
    return text


def respond(pupil: str, question: str) -> Iterator[str]:
    path = STORE / f"{pupil}.json"
    profile = json.loads(path.read_text())["profile"] if path.exists() else ""
    for part in litellm.completion(
        model="openai/gpt-4.1-mini",
        messages=complete("respond", profile=profile, question=question),
        temperature=0,
        max_tokens=60,
        stream=True,
    ):
        yield part.choices[0].delta.content or ""
