"""Memory systems in environments of their own: their libraries clash with ours, or need another Python.

    @in_worker(requirements=("mylib==2.1",), python=("3.12", "3.13"))
    class MyMemory:            # importable without mylib: its methods import it
        name = "my-memory"
        ...

`memtune system install my-memory` (or `module:MyMemory`) makes the environment. Prompts, operations and settings are
read here; `build`, `answer` and the optional methods run in a worker process there, and its model calls come back.
"""

from experiments.systems.worker.isolated import in_worker

__all__ = ["in_worker"]
