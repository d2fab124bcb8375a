"""A script: notes of what a user says in a dict, answers from them; one client for all."""

import sys
from collections import defaultdict

from openai import OpenAI

client = OpenAI()
MODEL = "gpt-4o-mini"

NOTES = defaultdict(list)

PROMPTS = {
    "extract": (
        "Extract the important facts from what the user says.\n"
        "One fact a line, each a full sentence in the third person.\n"
        "Write NONE if there is nothing to keep.\n"
    ),
    "answer": "You know this about the user:\n%s\n\n" + "Question: %s\n" + "Answer with as few words as possible.",
}


def ask(prompt, system=None):
    messages = [{"role": "user", "content": prompt}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    reply = client.chat.completions.create(model=MODEL, messages=messages)
    return reply.choices[0].message.content


def save(user, said):
    reply = ask(said, system=PROMPTS["extract"] + "The user is called " + user + ".")
    for line in reply.splitlines():
        line = line.strip("- ")
        if line and line != "NONE":
            NOTES[user].append(line)


def find(user, question, limit=5):
    words = set(question.lower().split())
    return sorted(NOTES[user], key=lambda note: len(words & set(note.lower().split())), reverse=True)[:limit]


def answer(user, question):
    notes = find(user, question)
    return ask(PROMPTS["answer"] % ("\n".join(notes), question))


def main():
    user = sys.argv[1]
    for line in sys.stdin:
        if line.rstrip().endswith("?"):
            print(answer(user, line.strip()))
        else:
            save(user, line.strip())


if __name__ == "__main__":
    main()
