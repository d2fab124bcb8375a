"""A LangGraph agent that remembers in a store."""

import json
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

EXTRACT = "Extract the facts worth remembering from the message, one per line. Reply NONE if there are none."
SYSTEM = "You are a helpful companion.\nWhat you remember:\n{memories}\n\nAnswer briefly."


class Agent:
    def __init__(self, folder, model=None):
        self.file = Path(folder) / "memories.json"
        self.model = model or ChatOpenAI(model="gpt-4o-mini", temperature=0)
        graph = StateGraph(MessagesState)
        graph.add_node("remember", self.remember)
        graph.add_node("respond", self.respond)
        graph.add_conditional_edges(
            START, lambda state: "respond" if state["messages"][-1].content.endswith("?") else "remember"
        )
        graph.add_edge("remember", END)
        graph.add_edge("respond", END)
        self.graph = graph.compile()

    def step(self, state):
        return "respond" if state["messages"][-1].content.endswith("?") else "remember"

    def memories(self):
        return json.loads(self.file.read_text()) if self.file.exists() else []

    def remember(self, state):
        said = state["messages"][-1]
        reply = self.model.invoke([SystemMessage(EXTRACT), HumanMessage(said.content)]).content
        if reply.strip() != "NONE":
            self.file.write_text(json.dumps([*self.memories(), *reply.splitlines()]))
        return {"messages": [AIMessage("Noted.")]}

    def respond(self, state):
        memories = "\n".join(f"* {memory}" for memory in self.memories())
        question = state["messages"][-1].content
        return {
            "messages": [self.model.invoke([SystemMessage(SYSTEM.format(memories=memories)), HumanMessage(question)])]
        }

    def chat(self, text):
        return self.graph.invoke({"messages": [HumanMessage(text)]})["messages"][-1].content
