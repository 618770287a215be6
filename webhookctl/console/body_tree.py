"""A JSON body as a tree of bounded size, for a template."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhookctl.display.event import body_object

# Bytes; a larger body is a download.
BODY_LIMIT: Final = 256 * 1024
NODES: Final = 5000
DEPTH: Final = 60


@dataclass(frozen=True, slots=True)
class Node:
    """A value in the tree.

    Attributes:
        name: its name or number in its parent, "" for the root.
        text: a simple value as JSON, or what a list or object contains.
        children: the values in it.
    """

    name: str
    text: str
    children: Sequence["Node"] = ()


@dataclass(frozen=True, slots=True)
class BodyTree:
    """A body: the root of its tree, or its text where it is not JSON.

    Attributes:
        root: the root, None where the body is not JSON.
        text: the body as text, or as base64 where it is not UTF-8.
        complete: whether the tree has all values.
    """

    root: Node | None
    text: str
    complete: bool = True


class _Reader:
    def __init__(self) -> None:
        self.left = NODES

    def node(self, name: str, value: Any, depth: int) -> Node:
        self.left -= 1
        match value:
            case dict() if value:
                named = [(str(key), each) for key, each in value.items()]
                return Node(name, f"{{{len(value)}}}", self._children(named, depth))
            case list() if value:
                named = [(str(number), each) for number, each in enumerate(value)]
                return Node(name, f"[{len(value)}]", self._children(named, depth))
            case _:
                return Node(name, json.dumps(value, ensure_ascii=False))

    def _children(self, named: Sequence[tuple[str, Any]], depth: int) -> list[Node]:
        found: list[Node] = []
        for name, value in named:
            if self.left <= 0 or depth >= DEPTH:
                self.left = min(self.left, 0)
                break
            found.append(self.node(name, value, depth + 1))
        return found


def tree_of(body: bytes) -> BodyTree:
    """Returns a body's tree; at most 5,000 values, 60 deep."""
    [text] = body_object(body).values()
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return BodyTree(None, text)
    reader = _Reader()
    return BodyTree(reader.node("", value, 0), text, complete=reader.left > 0)
