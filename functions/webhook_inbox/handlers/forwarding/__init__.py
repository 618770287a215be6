"""Ready-made handlers: what comes in is handed on, to a service of your own or to one of AWS.

    router.on("invoice.*", name="stripe.forward-billing")(forward("billing", path="/hooks"))

Each is one effect, so it happens once as far as the other side can tell a repetition; how it
can is said with each. They have no names of their own: give `name=` where they register.
"""

from webhook_inbox.handlers.forwarding.aws import invoke, start_execution, to_eventbridge
from webhook_inbox.handlers.forwarding.http import forward

__all__ = ["forward", "invoke", "start_execution", "to_eventbridge"]
