"""The memory systems that memtune ships, and how tuned prompts go back into them: a folder, or a file, for each.

`system.py` is the system under test, `exporter.py` writes prompts in the product's form, `proof.py` shows that the
product sends them, `recorder.py` records a user's own instance. What a memory system is stands in `tracing.systems`.

fact_memory, rag, long_context                            our own in a file each
evermemos, trace_memory                                   our own in a folder each
mem0, memori, langmem, everos                             real libraries and servers
graphiti, cognee                                          exported to, not run
building_blocks                                           what the systems share
exporting                                                 the Protocol of exporters, forms for any system
worker, libraries                                         environments for libraries that clash with ours
"""
