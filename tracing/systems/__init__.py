"""Memory systems under test: what one is, the built-in ones, and how tuned prompts go back into them.

protocol, prompts, layouts, description          what a system is
registry, calls, contract_suite                  finding one, calling it, and checking one of your own
libraries                                        is the library that a system runs installed
conversations, texts, entries                    what it reads, and what it works with and stores
interventions                                    changing what its operations emit
building_blocks; fact_memory, rag, mem0_memory   what the built-in systems share, and the systems
mem0_additive                                    Mem0 2.x
worker                                           systems that run in environments of their own
exporting                                        writing tuned prompts for use elsewhere
"""
