"""Runs the real code one call at a time and caches the node that each answer leads to.

A use case depends on its ports only, so it is a function of their answers: after the same answers
it makes the same next call. The answers of a program therefore form a tree. A known node costs one
lookup. A new node is computed by resuming the program in the middle of its stack, or by running it
again from the beginning with the recorded answers. Schedules thus share their common prefixes, and
a state of the world can be restored although Python cannot copy stacks.
"""

import marshal
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from greenlet import GreenletExit, getcurrent, greenlet

from webhook_inbox.domain.ports import Backlog, Message, Outgoing, Page
from webhook_inbox.domain.timestamps import to_ms

# Suspended programs to keep; others are run again when needed.
MAX_STOPPED: Final = 256
# Cached nodes before all are discarded; each takes about 2 KB.
MAX_NODES: Final = 400_000


class Call(NamedTuple):
    """A call of a port."""

    port: str
    method: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


class Answer(NamedTuple):
    """The result of a call: a value, or the class and the arguments of an error."""

    value: Any = None
    error: type[Exception] | None = None

    @property
    def key(self) -> Hashable:
        """A value that identifies the answer."""
        return self.error, _key(self.value)


Ask = Callable[[Call], Any]
Program = Callable[[Ask], Any]


class Crashed(NamedTuple):
    """The result of a program that raised an unexpected error."""

    error: Exception


class Nondeterminism(AssertionError):
    """The same answers led to another call, so the code bypasses its ports."""


class Node:
    """A state of a program: it makes `call` next, or ended with `result`."""

    __slots__ = ("answer", "call", "next", "number", "parent", "program", "result")

    def __init__(
        self, number: int, program: Program, parent: "Node | None", answer: Answer | None
    ) -> None:
        self.number = number
        self.program = program
        self.parent = parent
        self.answer = answer
        self.call: Call | None = None
        self.result: Any = None
        self.next: dict[Hashable, Node] = {}


@dataclass(slots=True)
class _Stopped:
    """A suspended program."""

    stack: Any
    abandoned: bool = False


class Stepping:
    """The reached nodes of all programs, and the suspended programs."""

    def __init__(self) -> None:
        self._roots: dict[Hashable, Node] = {}
        self._stopped: OrderedDict[int, _Stopped] = OrderedDict()
        self._numbers = 0
        self._node_count = 0

    def begin(self, key: Hashable, program: Program) -> Node:
        """Returns the first node of a program that `key` identifies."""
        root = self._roots.get(key)
        if root is None:
            root = self._node(program, None, None)
            self._reach(root, self._resume(_Stopped(None), root, Answer()))
            self._roots[key] = root
        return root

    def advance(self, node: Node, answer: Answer) -> Node:
        """Returns the node that this answer to the node's call leads to."""
        key = answer.key
        found = node.next.get(key)
        if found is None:
            found = self._node(node.program, node, answer)
            stopped = self._stopped.pop(node.number, None) or self._run_again(node)
            self._reach(found, self._resume(stopped, found, answer))
            node.next[key] = found
        return found

    @property
    def crowded(self) -> bool:
        """True once the cache is full and `forget` is due."""
        return self._node_count > MAX_NODES

    def forget(self) -> None:
        """Discards every node; nodes still referenced by a caller stay usable."""
        for stopped in self._stopped.values():
            _abandon(stopped)
        self._stopped.clear()
        self._roots.clear()
        self._node_count = 0

    def _node(self, program: Program, parent: Node | None, answer: Answer | None) -> Node:
        self._numbers += 1
        self._node_count += 1
        return Node(self._numbers, program, parent, answer)

    def _reach(self, node: Node, stopped: _Stopped) -> None:
        if node.call is None:
            return
        self._stopped[node.number] = stopped
        if len(self._stopped) > MAX_STOPPED:
            _abandon(self._stopped.popitem(last=False)[1])

    def _resume(self, stopped: _Stopped, node: Node, answer: Answer) -> _Stopped:
        """Runs the program to its next call or its end and stores that in `node`."""
        made = _go(stopped, node.program, answer)
        if stopped.stack.dead:
            node.result = made
        else:
            node.call = made
        return stopped

    def _run_again(self, node: Node) -> _Stopped:
        path: list[Node] = []
        at: Node | None = node
        while at is not None:
            path.append(at)
            at = at.parent
        stopped = _Stopped(None)
        for at in reversed(path):
            call = _go(stopped, at.program, at.answer or Answer())
            if call != at.call:
                raise Nondeterminism(f"{call} instead of {at.call}")
        return stopped


def _go(stopped: _Stopped, program: Program, answer: Answer) -> Any:
    if stopped.stack is not None:
        return stopped.stack.switch(answer)
    home = getcurrent()

    def ask(call: Call) -> Any:
        if stopped.abandoned:
            raise GreenletExit
        given: Answer = home.switch(call)
        if given.error is not None:
            raise given.error(*given.value)
        return given.value

    def body() -> Any:
        try:
            return program(ask)
        except Exception as error:  # noqa: BLE001 - the simulation reports it
            return Crashed(error)

    stopped.stack = greenlet(body, parent=home)
    return stopped.stack.switch()


def _abandon(stopped: _Stopped) -> None:
    # As with kill -9, cleanup code has no effect: every further call raises again.
    stopped.abandoned = True
    stopped.stack.throw(GreenletExit)


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value  # type: ignore[no-any-return]
    try:
        return marshal.dumps(_plain(value), 2)
    except ValueError as error:
        raise TypeError(f"no key for {value!r}") from error


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(entry) for entry in value]
    return value


_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    dict: lambda value: value,
    datetime: to_ms,
    Message: lambda m: (m.id, m.receipt, m.body, to_ms(m.sent_at), m.receive_count),
    Page: lambda page: (list(page.items), page.next),
    Backlog: lambda backlog: (backlog.visible, str(backlog.oldest)),
    Outgoing: lambda outgoing: (outgoing.body, outgoing.delay),
}
