"""Tests of the handlers, on the real inbox in memory."""

from handlers.orders import confirm
from webhook_inbox.testing import Inbox

ORDER = {"id": "o-1", "type": "order.paid"}


def test_an_order_is_confirmed_once_although_its_worker_dies(inbox: Inbox) -> None:
    run = inbox.run(confirm, ORDER, crash_after="confirm")
    inbox.settle()
    assert (run.status, run.attempts) == ("done", 2)
    assert run.effects["confirm"].starts == 1
