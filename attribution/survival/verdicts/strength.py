"""How much each kind of verdict by survival is trusted, from 0 to 1, before the individual case is considered."""

from __future__ import annotations

FAILED = 0.95
FORMAT = 0.95
NEVER_EXTRACTED = 0.9
GARBLED = 0.6
LOST = 0.9
NOT_UPDATED = 0.75
NOT_DELETED = 0.85
NOT_RETRIEVED = 0.9
IGNORED = 0.85
INVENTED = 0.8
