"""What a memory system under test is: its protocol, its prompts, and what checks one of your own.

protocol, prompts, layouts, description          what a system is
registry, calls                                  finding one, and calling it
conformance, recording_check                     checking one of your own, and what it records
conversations, texts, entries                    what it reads, and what it works with and stores
interventions                                    changing what its operations emit
seeding                                          the prompts that it begins with
suite                                            what the conformance suites run, and a small system for them

The systems themselves are in `experiments.systems`; `registry` knows them by name, as it does those of other
distributions, and nothing here imports them.
"""
