"""The agent call chain, which detects loops of agents.

An agent that calls another one sends `x-agent-call-chain`, the names of all waiting agents
separated by commas; `x-agent-call-depth`, their number; and `x-agent-trace-id`, the id of the
whole interaction. Each call of a handler extends the values of its event.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.internal_errors import SkippedBecause
from webhook_inbox.domain.model import SkipReason

CHAIN: Final = "x-agent-call-chain"
DEPTH: Final = "x-agent-call-depth"
TRACE: Final = "x-agent-trace-id"
DEPTH_LIMIT: Final = 8
_NAME_LIMIT: Final = 128
# The length to which the header of a stored event is cut.
_CHAIN_LIMIT: Final = 1024
_TRACE_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_UNFIT: Final = re.compile(r"[^!-~]", re.ASCII)
_NUMBER: Final = re.compile(r"0*([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CallChain:
    """The agents that have called one another up to here.

    Attributes:
        agents: their names, the first caller first.
        depth: the number of nested calls; at least the number of names.
        trace_id: the id of the whole interaction, "" for none.
    """

    agents: tuple[str, ...] = ()
    depth: int = 0
    trace_id: str = ""

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> "CallChain":
        """Returns the chain in the headers of an event; invalid values are ignored."""
        chain = headers.get(CHAIN, "")
        # The names are sent on in a header: other characters are replaced.
        named = (_UNFIT.sub("?", name.strip())[:_NAME_LIMIT] for name in chain.split(","))
        agents = tuple(name for name in named if name)
        given = headers.get(DEPTH, "").strip()
        # A number with too many digits is valid, and too deep.
        number = _NUMBER.fullmatch(given)
        depth = int(number[1][:6]) if number else 0
        if len(chain) >= _CHAIN_LIMIT:
            # The header was cut when the event was stored, so further names are unknown.
            depth = max(depth, DEPTH_LIMIT + 1)
        trace_id = headers.get(TRACE, "").strip()
        known = trace_id if _TRACE_ID.fullmatch(trace_id) else ""
        return cls(agents, max(depth, len(agents)), known)

    def check(self, handler: str) -> None:
        """Checks that a handler is not in the chain, and that the chain is not too long.

        Raises:
            Skipped: there is a loop, or more than 8 nested calls.
        """
        if handler in self.agents:
            chain = " → ".join((*self.agents, handler))
            raise SkippedBecause(SkipReason.LOOP, f"agent loop: {chain[-512:]}")
        if self.depth > DEPTH_LIMIT:
            text = f"agent call depth {self.depth} exceeds the limit of {DEPTH_LIMIT}"
            raise SkippedBecause(SkipReason.LOOP, text)

    def onward(self, handler: str, *, source: str, event_id: str) -> dict[str, str]:
        """Returns the headers of a call that a handler makes for this event."""
        fresh = sha256(f"{source}\0{event_id}".encode(errors="replace")).hexdigest()[:32]
        return {
            CHAIN: ",".join((*self.agents, handler)),
            DEPTH: str(self.depth + 1),
            TRACE: self.trace_id or fresh,
        }
