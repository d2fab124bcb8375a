from own_exporter import JsonPrompts
from own_memory import NoteMemory

from tracing.systems.contract_suite import MemorySystemContract
from tracing.systems.exporting.contract_suite import ExporterContract


class TestNoteMemory(MemorySystemContract):
    def system(self):
        return NoteMemory()


class TestJsonPrompts(ExporterContract):
    def exporter(self):
        return JsonPrompts()

    def candidate(self):
        return {name: spec.text for name, spec in NoteMemory.prompts.items()}
