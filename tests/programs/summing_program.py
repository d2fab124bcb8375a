"""A companion on LangChain, whose memory is the chat with its older part summed up; kept in a file."""

import json

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, messages_from_dict, messages_to_dict
from langchain_openai import ChatOpenAI

SUMMARY = """Sum up what the speakers tell about themselves, a line for each matter.

What was said:
{messages}"""
REPLY = "You are an old friend who remembers everything. Answer what you are asked in a few words."


class Companion:
    def __init__(self, path):
        self.path = path
        self.messages = messages_from_dict(json.loads(path.read_text())) if path.exists() else []
        model = ChatOpenAI(model="gpt-4o-mini", max_retries=0)
        self.summing = SummarizationMiddleware(
            model, trigger=("messages", 2), keep=("messages", 1), summary_prompt=SUMMARY
        )
        self.agent = create_agent(model, system_prompt=REPLY)

    def hear(self, text):
        self.messages.append(HumanMessage(text, id=str(len(self.messages))))
        changed = self.summing.before_model({"messages": self.messages}, None)
        if changed is not None:
            self.messages = [one for one in changed["messages"] if not isinstance(one, RemoveMessage)]
        self.path.write_text(json.dumps(messages_to_dict(self.messages)))

    def ask(self, question):
        return self.agent.invoke({"messages": [*self.messages, HumanMessage(question)]})["messages"][-1].text
