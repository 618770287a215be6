"""The state of a run's effects and jobs, and whether a retry is safe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.times import spelled
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.printable import cut
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.completions.journal import WaitState
from webhook_inbox.handlers.effects.journal import EffectState, decode
from webhook_inbox.handlers.effects.plan import InDoubt
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.schema import EFFECT_PREFIX

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
class RunEffect:
    """An effect of a run; of several events where they share it. An absent value is None.

    Attributes:
        handler: the run's handler.
        name: its handler's name for it, and "#1", "#2" … under new keys.
        state: its state.
        key: its idempotency key.
        attempt: the number of the attempt that started it last.
        started_at: when that was.
        committed_at: when it was recorded that it happened.
        failed_at: when it was recorded that it did not happen.
        key_ends: the end of the destination's idempotency window.
        in_doubt: the policy for a start without a commit.
        doubtful_since: its first start in doubt; None where it is not in doubt.
        error: the error of its last call.
        unrecorded: why its result is unknown although it happened.
        shared: the business key under which several events share it.
        found_by: the probe that found that it happened.
        told_by: the person who recorded its result.
        reason: the person's reason.
        fails: whether it started a job that failed, so that the next attempt starts another.
        stored_result: its encoded result.
    """

    handler: str
    name: str
    state: Standing
    key: str | None = None
    attempt: int | None = None
    started_at: datetime | None = None
    committed_at: datetime | None = None
    failed_at: datetime | None = None
    key_ends: datetime | None = None
    in_doubt: str | None = None
    doubtful_since: datetime | None = None
    error: str | None = None
    unrecorded: str | None = None
    shared: str | None = None
    found_by: str | None = None
    told_by: str | None = None
    reason: str | None = None
    fails: bool = False
    stored_result: bytes | None = None

    @property
    def result(self) -> Any:
        """The result that the handler received; None without one."""
        if self.stored_result is None or self.unrecorded is not None:
            return None
        return decode(self.stored_result)

    @property
    def key_version(self) -> int:
        """The key version of the run that started it."""
        return int(self.name.partition("#")[2] or 0)


@dataclass(frozen=True, slots=True)
class RunWait:
    """A run's wait for a job; an absent value is None.

    Attributes:
        handler: the run's handler.
        name: the handler's name for the job.
        status: the state of the job.
        number: the number of the job, 1 for the first of this name.
        since: when the wait began.
        until: when it ends without the job.
        ended_at: when the job's end was recorded.
        ended_by: who reported it.
        late: whether the job ended after its run stopped waiting.
        error: the job's error.
        stored_result: the job's encoded result.
    """

    handler: str
    name: str
    status: str
    number: int
    since: datetime
    until: datetime
    ended_at: datetime | None
    ended_by: str | None
    late: bool
    error: str | None
    stored_result: bytes | None

    @property
    def job(self) -> str:
        """The name of the effect that starts the job."""
        return self.name if self.number == 1 else f"{self.name}:{self.number}"

    @property
    def result(self) -> Any:
        """The job's result; None without one."""
        return None if self.stored_result is None else decode(self.stored_result)


def waits_of(overview: Overview) -> Iterator[RunWait]:
    """Yields the jobs for which an event's runs wait or waited."""
    for row in overview.waits:
        yield RunWait(
            handler=row["handler"],
            name=row["name"],
            status=row["status"],
            number=row["number"],
            since=from_ms(row["since"]),
            until=from_ms(row["until"]),
            ended_at=_time(row, "ended_at"),
            ended_by=row.get("ended_by"),
            late=row.get("late", False),
            error=row.get("error"),
            stored_result=row.get("result"),
        )


def newest_waits_of(overview: Overview) -> list[RunWait]:
    """Returns the newest job of each wait."""
    waits = sorted(waits_of(overview), key=lambda wait: wait.number)
    return list({(wait.handler, wait.name): wait for wait in waits}.values())


def effects_of(overview: Overview, handler: str, *, now: datetime) -> list[RunEffect]:
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
    failed = {
        wait.job
        for wait in newest_waits_of(overview)
        if wait.handler == handler and wait.status in {WaitState.AGAIN, WaitState.FAILED}
    }
    found = [
        _effect(
            handler, name, row, _standing(row, run, now), fails=name.partition("#")[0] in failed
        )
        for name, row in rows.items()
    ]
    return sorted(
        found, key=lambda effect: (rows[effect.name].get("started_at", 1 << 53), effect.name)
    )


def _effect(
    handler: str, name: str, row: Mapping[str, Any], state: Standing, *, fails: bool
) -> RunEffect:
    since = _time(row, "doubtful_since")
    word = row.get("word", {})
    return RunEffect(
        handler=handler,
        name=name,
        state=state,
        key=row.get("idempotency_key"),
        attempt=row.get("attempt"),
        started_at=_time(row, "started_at"),
        committed_at=_time(row, "committed_at"),
        failed_at=_time(row, "failed_at"),
        key_ends=since and since + timedelta(seconds=int(row["key_lifetime"])),
        in_doubt=row.get("in_doubt"),
        doubtful_since=since if state is Standing.IN_DOUBT else None,
        error=row.get("error"),
        unrecorded=row.get("unrecorded"),
        shared=row.get("shared"),
        found_by=row.get("found_by"),
        told_by=word.get("by"),
        reason=word.get("reason"),
        fails=fails,
        stored_result=row.get("result"),
    )


def _time(row: Mapping[str, Any], name: str) -> datetime | None:
    return from_ms(row[name]) if name in row else None


def verdict(run: Run, effects: Sequence[RunEffect], *, now: datetime, program: Program) -> str:
    """Returns whether a retry is safe, as far as the effects show; "" without effects."""
    earlier = [effect.name for effect in effects if effect.key_version < run.key_version]
    effects = [effect for effect in effects if effect.key_version == run.key_version]
    if earlier and not effects:
        return f"new keys: {', '.join(earlier)} began under earlier keys and is performed again"
    doubts = [effect for effect in effects if effect.state is Standing.IN_DOUBT]
    if doubts:
        return "; ".join(_doubtful(run, effect, now, program) for effect in doubts)
    again = [effect.name for effect in effects if effect.fails]
    done = [
        effect.name for effect in effects if effect.state is Standing.COMMITTED and not effect.fails
    ]
    undone = [effect.name for effect in effects if effect.name not in {*done, *again}]
    if again:
        others = f"; {_join_names(done)} committed and will not be repeated" if done else ""
        return f"the job that {', '.join(again)} started has failed: a retry starts another{others}"
    if done:
        rest = f"; {_join_names(undone)} not committed" if undone else ""
        return f"retry-safe: {_join_names(done)} committed and will not be repeated{rest}"
    if undone:
        return SAFE
    return f"{SAFE}: none was begun with ctx.effect" if run.attempt_count else ""


def _doubtful(run: Run, effect: RunEffect, now: datetime, program: Program) -> str:
    ends, since = effect.key_ends, effect.doubtful_since
    began = f"{effect.name} started and did not commit"
    if error := " ".join((effect.error or "").split()):
        began += f" (last error: {cut(error, ERROR_SHOWN)})"
    doubt = f"in doubt since {spelled(since)}" if since else "in doubt"
    lives = ends is not None and now < ends
    repeats = effect.in_doubt == InDoubt.RETRY
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


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
