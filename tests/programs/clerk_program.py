"""What is said goes to a worker in the background, which writes the memory."""

import logging
import queue
import threading

from openai import OpenAI

EXTRACT_PROMPT = "Write each fact of the following message on a line of its own.\n\n{message}"
ANSWER_PROMPT = "You remember:\n{facts}\n\nAnswer this question: {question}"
FACTS = []
JOBS = queue.Queue()


def llm(prompt):
    reply = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content


def work():
    while True:
        message = JOBS.get()
        try:
            FACTS.extend(fact.strip("- ") for fact in llm(EXTRACT_PROMPT.format(message=message)).splitlines())
        except Exception:
            logging.exception("a message is not remembered")
        finally:
            JOBS.task_done()


threading.Thread(target=work, daemon=True).start()


def remember(message):
    JOBS.put(message)


def search(question):
    words = set(question.lower().split())
    return sorted(FACTS, key=lambda fact: -len(words & set(fact.lower().split())))[:5]


def answer(question):
    JOBS.join()
    return llm(ANSWER_PROMPT.format(facts="\n".join(search(question)), question=question))
