from agent_program import Agent

import memtune


def build(folder, conversation):
    agent = Agent(folder)
    for turn in conversation.turns():
        if not turn.text.endswith("?"):
            agent.chat(turn.spoken)


def answer(folder, question):
    return Agent(folder).chat(question)


watched = memtune.watch(Agent, retrieve="memories")
system = memtune.system(
    build=build,
    answer=answer,
    prompts={"extract": "agent_program:EXTRACT", "companion": "agent_program:SYSTEM"},
    stages={"extract": "extract", "companion": "answer"},
    watched=watched,
)
