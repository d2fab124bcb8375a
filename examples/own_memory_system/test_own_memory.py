from own_exporter import JsonPrompts
from own_memory import NoteMemory

from memtune.systems import ExporterConformance, MemorySystemConformance


class TestNoteMemory(MemorySystemConformance):
    def system(self):
        return NoteMemory()


class TestJsonPrompts(ExporterConformance):
    def exporter(self):
        return JsonPrompts()

    def candidate(self):
        return {name: spec.text for name, spec in NoteMemory.prompts.items()}
