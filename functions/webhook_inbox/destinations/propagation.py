"""Callbacks between agents: who has called whom, so that a loop ends.

An agent that calls another one says on whose behalf: `x-agent-call-chain` names all that are
waiting, separated by commas, `x-agent-call-depth` how many these are, `x-agent-trace-id` what
belongs together. What an event came with is extended on every call that its handler makes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.errors import Skipped

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?", re.ASCII
)
_NO_SPAN: Final = "0" * 16


def onward(traceparent: str, *, span: str, origin: str) -> str:
    """Returns the `traceparent` of a call that is made because of an event.

    The event's trace with a span of its own. An event without a trace, or with nonsense, gets
    one by its origin: all calls for it share that, in every attempt.

    Args:
        traceparent: what the event came with, "" for nothing.
        span: 16 random hex digits.
        origin: what the event is known by.
    """
    known = _TRACEPARENT.fullmatch(traceparent.strip())
    made_up = sha256(origin.encode(errors="replace")).hexdigest()[:32]
    trace, flags = (known[1], known[2]) if known else (made_up, "01")
    return f"00-{trace}-{span if span != _NO_SPAN else '1'.zfill(16)}-{flags}"


CHAIN: Final = "x-agent-call-chain"
DEPTH: Final = "x-agent-call-depth"
TRACE: Final = "x-agent-trace-id"
DEPTH_LIMIT: Final = 8
_NAME_LIMIT: Final = 128
# Of what is kept of a header with an event.
_CHAIN_LIMIT: Final = 1024
_TRACE_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_UNFIT: Final = re.compile(r"[^!-~]", re.ASCII)
_NUMBER: Final = re.compile(r"0*([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CallChain:
    """The agents that have called one another up to here.

    Attributes:
        agents: their names, the first caller first.
        depth: how many calls deep this is; at least as many as there are names.
        trace_id: what belongs together, "" where nobody said.
    """

    agents: tuple[str, ...] = ()
    depth: int = 0
    trace_id: str = ""

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> "CallChain":
        """Returns what an event's headers say; nonsense says nothing."""
        chain = headers.get(CHAIN, "")
        # It goes on in a header, and must be fit for one.
        named = (_UNFIT.sub("?", name.strip())[:_NAME_LIMIT] for name in chain.split(","))
        agents = tuple(name for name in named if name)
        told = headers.get(DEPTH, "").strip()
        # A number that is longer than any is too deep, and not nonsense.
        number = _NUMBER.fullmatch(told)
        depth = int(number[1][:6]) if number else 0
        if len(chain) >= _CHAIN_LIMIT:
            # It was cut when the event was stored: who stands in the rest, nobody knows.
            depth = max(depth, DEPTH_LIMIT + 1)
        trace_id = headers.get(TRACE, "").strip()
        known = trace_id if _TRACE_ID.fullmatch(trace_id) else ""
        return cls(agents, max(depth, len(agents)), known)

    def check(self, handler: str) -> None:
        """Lets a handler begin unless it has been here before, or the chain is too long.

        Raises:
            Skipped: it is a loop, or more than 8 calls deep.
        """
        if handler in self.agents:
            chain = " → ".join((*self.agents, handler))
            raise Skipped(f"agent loop: {chain[-512:]}")
        if self.depth > DEPTH_LIMIT:
            raise Skipped(f"agent call depth {self.depth}, and {DEPTH_LIMIT} is the limit")

    def onward(self, handler: str, *, source: str, event_id: str) -> dict[str, str]:
        """Returns the headers of a call that a handler makes because of this event."""
        fresh = sha256(f"{source}\0{event_id}".encode(errors="replace")).hexdigest()[:32]
        return {
            CHAIN: ",".join((*self.agents, handler)),
            DEPTH: str(self.depth + 1),
            TRACE: self.trace_id or fresh,
        }
