"""Reading text: tokens, stems, numbers, dates, names, set phrases, and how much of one text another contains.

All comparisons of texts use these, so that they agree. `languages` has what differs from language to language.

Raises:
    ConfigError: on import, where a library that texts are read with is not installed.
"""

from importlib.util import find_spec

from tracing.errors import ConfigError

for _library in ("simplemma", "text_to_num", "nicknames"):
    if find_spec(_library) is None:
        raise ConfigError(f"attribution reads text with {_library}: pip install 'memtune[attribute]'")
