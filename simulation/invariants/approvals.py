"""Checks the requests that people decide, the messages about them, and the effects they permit.

(no row) ─► open ─► open          a decision by the person who acts, an escalation, a message
            open ─► approved      enough different people approved, and none denied
            open ─► denied, expired, void
An effect begins only while so many people have approved exactly its arguments.
"""

from typing import Final

from simulation.invariants.observer import Actor, Observer, RunName, must
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.effects.plan import Approval
from webhook_inbox.ledger.schema import APPROVAL_PREFIX

SKEW_MS: Final = 5_000
# The reconciler's look at a held run, and its next pass.
LOOK_MS: Final = 3_600_000 + 60_000


def is_request(key: Key) -> bool:
    """Returns whether a key is that of a request."""
    return key.sk.startswith(APPROVAL_PREFIX)


def owner(row: Item) -> RunName:
    """Returns the run that asks."""
    return row["source"], row["event_id"], row["handler"]


def changed(
    observer: Observer, actor: Actor, old: Item, new: Item, others: list[Item], *, now: int
) -> None:
    """Checks one write of a request.

    Args:
        observer: the notes of the world.
        actor: the writer.
        old: the row before; empty if there was none.
        new: the row after.
        others: the other requests of the same run and effect.
        now: the time, in ms.
    """
    run, before = owner(new), old.get("decisions", {})
    if not old:
        rivals = [each for each in others if each["state"] == "open"]
        must("hold", not rivals, f"{run} asks twice at once")
        return
    must("hold", old["state"] == "open", f"{run}: a request changed after its end")
    kept = all(new.get("decisions", {}).get(person) == word for person, word in before.items())
    must("hold", kept, f"{run}: a decision was lost or changed")
    given = new.get("decisions", {}).keys() - before.keys()
    if given:
        # A slow call may record it later: an expiry that is recorded first makes the write fail.
        late = {person for person in given if new["decisions"][person]["at"] >= old["until"]}
        must("hold", not late, f"{run}: {late} decided after the request had expired")
        ours = actor.kind == "late" or given == {actor.person}
        must("hold", ours, f"{run}: {actor.person or actor.kind} decided as {given}")
    if "escalated_at" in old:
        once = new.get("escalated_at") == old["escalated_at"]
        must("hold", once, f"{run}: a request was escalated twice")
    told = new.get("announced", {}).keys() - old.get("announced", {}).keys()
    unsent = {person for person in told if not observer.told.get((*_place(new), person))}
    must("hold", not unsent, f"{run}: {unsent} count as told and got no message")
    if new["state"] == "expired":
        must("hold", now + SKEW_MS >= new["until"], f"{run}: a request expired early")


def _place(row: Item) -> tuple[str, str]:
    return row["pk"], row["sk"]


def check_begun(run: RunName, arguments: str, approval: Approval, requests: list[Item]) -> None:
    """Checks that enough people approved exactly these arguments, and that none denied them."""
    decided = [
        request
        for request in requests
        if request["fingerprint"] == arguments and request["state"] == "approved"
    ]
    must("hold", bool(decided), f"{run} began without an approval of these arguments")
    for request in decided:
        given = request["decisions"].values()
        words = [each["word"] for each in given]
        in_time = all(each["at"] < request["until"] for each in given)
        enough = words.count("approve") >= approval.count and "deny" not in words
        must("hold", enough and in_time, f"{run} began with the approvals {words}")


def check_woken(run: RunName, held: Item, request: Item | None, *, faultless: bool) -> None:
    """Checks that a run whose request is decided did not wait for the reconciler for long."""
    if (
        request is None
        or "ended_at" not in request
        or request["state"] not in {"approved", "denied"}
    ):
        return
    since = max(request["ended_at"], held["held"]["at"])
    must(
        "hold", held["due_at"] <= since + LOOK_MS, f"{run} was decided and waited for its next wake"
    )
    must("hold", not faultless, f"{run} was decided without a fault and was not sent")


def told(observer: Observer, key: Key, person: str, *, most: int) -> None:
    """Notes a message to a person, and checks that there are no more than faults explain."""
    place = *key, person
    observer.told[place] = observer.told.get(place, 0) + 1
    must("hold", observer.told[place] <= most, f"{person} was told {observer.told[place]} times")


def check_end(observer: Observer, row: Item, asked: set[str], *, ended: bool) -> None:
    """Checks, once a world is idle, that a request or its run has ended, and who was told."""
    run = owner(row)
    must("hold", ended or row["state"] != "open", f"{run}: its request is still open")
    if row["state"] == "expired":
        silent = asked - row.get("decisions", {}).keys()
        missed = {p for p in silent if not observer.told.get((*_place(row), p))}
        must("hold", not missed, f"{run}: {missed} were never told")
