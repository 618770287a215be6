"""The measured process: `python -S probe.py MODULE DESCRIPTOR BEGUN`, with nothing else loaded.

Imports MODULE, reads the name of a file of events from each line of its input, hands the events to
the handler, and writes a line of JSON to the descriptor: the statuses, the seconds of CPU that the
process used for them, user and system, and all that it has used since its start. The first event
of the first file is the cold start: BEGUN is the monotonic time, in seconds, at which the process
was started.
"""

import json
import os
import sys
import time


class Context:
    """The attributes of Lambda's context that handlers read."""

    function_name = "ingest"
    function_version = "$LATEST"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:ingest"
    aws_request_id = "8f507cfc-2f4b-4697-b07a-ac58fc914c95"

    def get_remaining_time_in_millis(self) -> int:
        """Returns the time that is left."""
        return 10_000


def main() -> None:
    """Answers the lines of the input."""
    module, descriptor, begun = sys.argv[1:]
    report, context = os.fdopen(int(descriptor), "w"), Context()
    handler = __import__(module, fromlist=["lambda_handler"]).lambda_handler
    for line in sys.stdin:
        with open(line.strip(), encoding="utf-8") as file:
            events = json.load(file)
        before = time.process_time()
        statuses = [handler(event, context)["statusCode"] for event in events]
        total, wall = time.process_time(), time.monotonic() - float(begun)
        figures = {"statuses": statuses, "cpu": total - before, "total": total, "wall": wall}
        report.write(f"{json.dumps(figures)}\n")
        report.flush()


main()
