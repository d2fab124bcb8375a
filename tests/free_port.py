"""A port for a server that is stopped and comes back at the same address."""

import random
import socket

LOW, HIGH = 20000, 32000
"""Below the ports that the system hands out, so that nobody gets one of them while its server is away."""


def free_port() -> int:
    """A port where nobody listens now."""
    while True:
        port = random.SystemRandom().randrange(LOW, HIGH)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
