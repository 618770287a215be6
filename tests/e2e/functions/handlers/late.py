"""A module that can be imported where the inbox is built, and not where it runs.

So is one whose library is missing in the lock.
"""

import os
from typing import Final

from handlers._downstream import post
from webhook_inbox import Context, Event, Router

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    raise ModuleNotFoundError("No module named 'left_out_of_the_lock'")

late: Final = Router("late", source="lab")


@late.on("twin", backoff="fast", max_attempts=2)
def follow(event: Event, ctx: Context) -> None:
    """Posts that it ran."""
    post(ctx, "/lab", effect="follow", body={"event": event.id})
