"""EverOS 1.5: the real server on loopback, traced by the requests that it makes."""
