"""The tutorial's assistant as plain functions."""

from pathlib import Path

import jinja2
import yaml
from openai import OpenAI

HERE = Path(__file__).parent
NOTE = "Summarize this chat in a few lines.\n\nChat:\n{turns}\n\nSummary:"
REPLY = jinja2.Template((HERE / "reply.j2").read_text())
PROMPTS = yaml.safe_load((HERE / "prompts.yaml").read_text())


def ask(request, max_tokens, system=None):
    messages = [{"role": "system", "content": system}] if system else []
    reply = OpenAI().chat.completions.create(
        model="qwen2.5-coder-0.5b",
        messages=[*messages, {"role": "user", "content": request}],
        max_tokens=max_tokens,
        temperature=0,
    )
    return reply.choices[0].message.content


def take_notes(turns):
    return [line for line in ask(NOTE.format(turns="\n".join(turns)), 200).splitlines() if line.strip()]


def find(notes, question):
    words = set(question.lower().split())
    return sorted(notes, key=lambda note: -len(words & set(note.lower().split())))[:6]


def answer(notes, question):
    text = ask(REPLY.render(notes=find(notes, question), question=question), 30, PROMPTS["answer"]["system"])
    return text.strip()
