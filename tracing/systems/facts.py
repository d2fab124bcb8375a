"""What systems that keep facts have in common: how a small model is asked for them, and what may happen to one."""

MAX_FACTS = 4
"""Most facts of one extraction; a small model fills whatever list it is given, so the limit is near what turns hold."""

EVENTS = ("ADD", "UPDATE", "DELETE", "NONE")

EXTRACT_TASK = (
    "List the facts that the speakers tell about themselves and their families. "
    "Write each fact as one short sentence in the third person.\n"
    'Reply as JSON: {{"facts": ["...", "..."]}}'
)
"""The seed's task, as the beginning of a template."""

EXTRACT_PURPOSE = (
    "Turn a conversation into short, self-contained facts that name the person and keep every concrete value."
)

FACTS_SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string", "maxLength": 140}, "maxItems": MAX_FACTS}},
    "required": ["facts"],
    "additionalProperties": False,
}
