"""EverOS 1.5: the real server on loopback, traced by the requests that it makes."""

from experiments.systems.everos.system import EverOs

__all__ = ["EverOs"]
