"""The scripted server of the benchmarks, by the name that the tests import."""

from benchmarks.scripted_server import CHECK, Reply, Script, ScriptedServer, after_meeting, prompt_of, vector_of

__all__ = ["CHECK", "Reply", "Script", "ScriptedServer", "after_meeting", "prompt_of", "vector_of"]
