"""New code in place of what failed; it ends whatever is running, so these tests come last."""

from tests.e2e.project import LABORATORY
from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import eventually
from webhook_inbox.domain.model import Run, Status


def test_a_module_that_cannot_be_imported_fails_its_own_runs_and_is_replayable_after_the_fix(
    inbox: WholeInbox,
) -> None:
    event_id = inbox.accept("twin")

    run = inbox.becomes(event_id, "late.follow", Status.DEAD_LETTER)
    assert "ModuleNotFoundError: No module named 'left_out_of_the_lock'" in run.last_error
    lead = eventually(lambda: _done(inbox, event_id, "lab.lead"), what="the other handler's run")
    assert lead.attempt_count == 1
    assert [effect["requests"] for effect in inbox.effects(event_id).values()] == [1]
    inbox.moved_to_dlq('"late.follow"')

    broken = (LABORATORY / "handlers" / "late.py").read_text()
    fixed = broken.replace('"AWS_LAMBDA_FUNCTION_NAME" in os.environ', "False")
    (inbox.source / "handlers" / "late.py").write_text(fixed)
    inbox.copy_functions()
    inbox.reload()
    assert inbox.replay(handler="late.follow")["counts"]["replayed"] >= 1

    runs = inbox.settled("lab", event_id).runs
    assert {run.handler: run.attempt_count for run in runs} == {"lab.lead": 1, "late.follow": 3}
    assert len({run.code_version for run in runs}) == 2
    assert {effect["requests"] for effect in inbox.effects(event_id).values()} == {1}


def _done(inbox: WholeInbox, event_id: str, handler: str) -> Run | None:
    run = inbox.runs("lab", event_id).get(handler)
    return run if run is not None and run.status is Status.DONE else None
