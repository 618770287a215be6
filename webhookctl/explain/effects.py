"""The state of a run's effects, and whether a retry is safe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.times import spelled
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.printable import cut
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.handlers.effects.plan import InDoubt
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.schema import EFFECT_PREFIX, WAIT_PREFIX

ERROR_SHOWN: Final = 160
SAFE: Final = "retry-safe, side effect not committed"


class Standing(StrEnum):
    """The state of an effect."""

    NOT_STARTED = "not started"
    UNDER_WAY = "under way"  # its attempt is in progress
    IN_DOUBT = "in doubt"  # started by an attempt that ended; it is unknown whether it happened
    COMMITTED = "committed"
    FAILED = "failed"  # it certainly did not happen, in any attempt


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect.

    Attributes:
        name: its handler's name for it, and "#1", "#2" … under new keys.
        standing: its state.
        row: its row; the shared row where several events share the effect.
        again: whether it started a job that failed, so that the next attempt starts another.
    """

    name: str
    standing: Standing
    row: Mapping[str, Any]
    again: bool = False

    @property
    def doubtful_since(self) -> datetime | None:
        """The time of its first start in doubt; None where it is not in doubt."""
        in_doubt = self.standing is Standing.IN_DOUBT
        return from_ms(self.row["doubtful_since"]) if in_doubt else None

    @property
    def key_ends(self) -> datetime | None:
        """The end of the destination's idempotency window; None where it never started."""
        if "doubtful_since" not in self.row:
            return None
        lifetime = timedelta(seconds=int(self.row["key_lifetime"]))
        return from_ms(self.row["doubtful_since"]) + lifetime

    @property
    def key_version(self) -> int:
        """The key version of the run that started it."""
        return int(self.name.partition("#")[2] or 0)

    @property
    def unrecorded(self) -> bool:
        """True if it happened and its result is unknown."""
        return "unrecorded" in self.row


def effects_of(overview: Overview, handler: str, *, now: datetime) -> list[Effect]:
    """Returns a run's effects in the order of their start, then by name."""
    run = next((run for run in overview.runs if run.handler == handler), None)
    prefix = f"{EFFECT_PREFIX}{handler}#"
    rows = {
        str(row["sk"]).removeprefix(prefix): row
        for row in overview.effects
        if row["sk"].startswith(prefix)
    }
    asked = str(run.held.get("subject", "")) if run else ""
    if asked.startswith("effect:"):
        rows.setdefault(asked.removeprefix("effect:"), {})
    again = _failed_jobs(overview, handler)
    found = [
        Effect(name, _standing(row, run, now), row, name.partition("#")[0] in again)
        for name, row in rows.items()
    ]
    return sorted(found, key=lambda effect: (effect.row.get("started_at", 1 << 53), effect.name))


def _failed_jobs(overview: Overview, handler: str) -> set[str]:
    """Returns the names of effects whose jobs failed."""
    prefix = f"{WAIT_PREFIX}{handler}#"
    rows = [row for row in overview.waits if row["sk"].startswith(prefix)]
    newest = {row["name"]: row for row in sorted(rows, key=lambda row: row["number"])}
    failed = (row for row in newest.values() if row["status"] in {"again", "failed"})
    return {str(row["sk"]).removeprefix(prefix) for row in failed}


def verdict(run: Run, effects: Sequence[Effect], *, now: datetime, program: Program) -> str:
    """Returns whether a retry is safe, as far as the effects show; "" without effects."""
    earlier = [effect.name for effect in effects if effect.key_version < run.key_version]
    effects = [effect for effect in effects if effect.key_version == run.key_version]
    if earlier and not effects:
        return f"new keys: {', '.join(earlier)} began under earlier keys and is performed again"
    doubts = [effect for effect in effects if effect.standing is Standing.IN_DOUBT]
    if doubts:
        return "; ".join(_doubtful(run, effect, now, program) for effect in doubts)
    again = [effect.name for effect in effects if effect.again]
    done = [
        effect.name
        for effect in effects
        if effect.standing is Standing.COMMITTED and not effect.again
    ]
    undone = [effect.name for effect in effects if effect.name not in {*done, *again}]
    if again:
        others = f"; {_listed(done)} committed and will not be repeated" if done else ""
        return f"the job that {', '.join(again)} started has failed: a retry starts another{others}"
    if done:
        rest = f"; {_listed(undone)} not committed" if undone else ""
        return f"retry-safe: {_listed(done)} committed and will not be repeated{rest}"
    if undone:
        return SAFE
    return f"{SAFE}: none was begun with ctx.effect" if run.attempt_count else ""


def _doubtful(run: Run, effect: Effect, now: datetime, program: Program) -> str:
    ends, since = effect.key_ends, effect.doubtful_since
    began = f"{effect.name} started and did not commit"
    if error := " ".join(str(effect.row.get("error", "")).split()):
        began += f" (last error: {cut(error, ERROR_SHOWN)})"
    doubt = f"in doubt since {spelled(since)}" if since else "in doubt"
    lives = ends is not None and now < ends
    repeats = effect.row.get("in_doubt") == InDoubt.RETRY
    if repeats and lives and ends is not None:
        return (
            f"{doubt}: {began}; its key is honoured until {spelled(ends)}: a retry that ends before"
            " then repeats it under the same key, a later one asks its probe, or holds the run"
        )
    who = _decided(run, program)
    if repeats and ends is not None:
        until = f"its key was honoured until {spelled(ends)}"
        return f"{doubt}, beyond its key's lifetime: {began}; {until}; {who}"
    return f"{doubt}: {began}, and is not repeated by itself; {who}"


def _decided(run: Run, program: Program) -> str:
    """Returns the way in which a doubt without a repetition ends."""
    if run.status is Status.HELD:
        approve, deny = program.command("hold approve"), program.command("hold deny")
        return f"decide with `{approve}` or `{deny}`, as above"
    seen = program.command("hold list")
    return f"the next attempt asks its probe, or holds the run: see `{seen}`"


def _standing(row: Mapping[str, Any], run: Run | None, now: datetime) -> Standing:
    match row.get("status"):
        case EffectState.COMMITTED:
            return Standing.COMMITTED
        case EffectState.FAILED:
            return Standing.FAILED
        case EffectState.STARTED:
            return Standing.UNDER_WAY if _under_way(row, run, now) else Standing.IN_DOUBT
        case _:
            return Standing.NOT_STARTED


def _under_way(row: Mapping[str, Any], run: Run | None, now: datetime) -> bool:
    if from_ms(row.get("busy_until", 0)) + CLOCK_SKEW <= now:
        return False
    if run is not None and _started_by(row, run):
        return run.status is Status.PROCESSING and run.lease_id == row.get("lease_id")
    return True  # A run of another event that shares it may be in progress.


def _started_by(row: Mapping[str, Any], run: Run) -> bool:
    starter = (row.get("source"), row.get("event_id"), row.get("handler"))
    return starter == (run.source, run.event_id, run.handler)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
