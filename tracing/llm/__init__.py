"""Access to language and embedding models: cache, budgets, metering, and the models that run in this process.

access, settings                           the models of a run, by role
models, dimension, dspy_lm                 one model to ask, also from DSPy
cache, booking, single_flight              the chain that a request passes: cache, ledger, budget, endpoint
endpoints, threads                         the endpoints of a run, and the threads that keep them busy
accounting                                 budget, meter and ledger
forwarding                                 calls of worker processes, made here through the same chain
http, serving                              one endpoint; servers on loopback, the gateway and the embedded models
"""

DEFAULT_CONTEXT = 4096
"""Tokens of context of an embedded model that nobody gave a length."""
