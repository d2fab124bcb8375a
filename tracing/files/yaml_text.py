"""YAML of people and of other tools: read by one function, which refuses what grows or nests without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracing.files.depth import DEEPEST

if TYPE_CHECKING:
    import yaml

MOST_VALUES = 100_000
"""Values of a document with each alias written out: what reads it later walks through all of them."""

_TOO_DEEP = f"nested more than {DEEPEST} levels deep"


def load_yaml(text: str, loader_class: type[yaml.SafeLoader] | None = None) -> Any:
    """The value of a YAML text.

    Raises:
        yaml.YAMLError: it is none, is nested too deep, or its aliases stand for more than `MOST_VALUES` values.
        ValueError: a number or an escape in it cannot be read.
    """
    import yaml

    loader_class = loader_class or yaml.SafeLoader
    if _is_too_deep(text, getattr(yaml, "CSafeLoader", loader_class)):
        raise yaml.YAMLError(_TOO_DEEP)
    loader = loader_class(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _measure(root, {})
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _is_too_deep(text: str, loader_class: type[Any]) -> bool:
    """Whether brackets or indentation nest too deep. It is found out first: PyYAML's scanner slows down with depth."""
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader_class):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return True
    except yaml.YAMLError as error:
        return "nesting depth" in str(error)  # libyaml has a limit too; any other fault is for who reads the text
    return False


def _measure(node: yaml.Node, measured: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values a node is with its aliases written out, and how many levels; the same node is measured once."""
    import yaml

    def refuse(problem: str) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

    if not isinstance(node, yaml.CollectionNode):
        return 1, 0
    if id(node) in measured:
        size = measured[id(node)]
        if size is None:
            raise refuse("an alias stands within what it is an alias of")
        return size
    measured[id(node)] = None
    pairs = isinstance(node, yaml.MappingNode)
    parts = [_measure(part, measured) for item in node.value for part in (item if pairs else (item,))]
    count, levels = 1 + sum(part[0] for part in parts), 1 + max((part[1] for part in parts), default=0)
    if count > MOST_VALUES:
        raise refuse(f"with its aliases written out it has more than {MOST_VALUES:,} values")
    if levels > DEEPEST:
        raise refuse(_TOO_DEEP)
    measured[id(node)] = count, levels
    return count, levels
