"""Memory systems under test: what one is, the built-in ones, and how tuned prompts go back into them.

protocol, prompts, layouts, description          what a system is
registry, calls, conformance                     finding one, calling it, and checking one of your own
libraries                                        is the library that a system runs installed
conversations, texts, entries                    what it reads, and what it works with and stores
interventions                                    changing what its operations emit
building_blocks, seeding                         what the built-in systems share
fact_memory, rag, long_context, evermemos,
trace_memory_system, mem0_memory, mem0_additive,
memori_memory, everos_server                     the systems: ours, and those of libraries
suite                                            tests of the conformance suite, and the small system they begin with
mem0_additive                                    Mem0 2.x
worker                                           systems that run in environments of their own
exporting                                        writing tuned prompts for use elsewhere
"""
