"""Tests of the forwarding, on the real inbox in memory."""

from webhook_inbox.testing import Inbox


def test_an_order_is_forwarded_once_although_the_answer_is_lost(inbox: Inbox) -> None:
    app = inbox.destinations["app"].stalls()
    run = inbox.run("shop.forward", {"id": "o-1", "type": "order.paid"})
    inbox.settle()
    assert (run.status, run.attempts, len(app.done)) == ("done", 2, 1)
