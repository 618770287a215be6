"""Measures the peak memory of the functions: `python -m bench.memory`, on Linux.

Each runs in a process of its own, as Lambda runs it: its imports; ingest and the processor then
take a small event; ingest then takes the largest bodies that API Gateway passes on, and beside the
processor such a body is parsed, as a handler may. AWS is a stub on loopback. A peak is the
process's largest resident set, in MB of 1,048,576 bytes; Lambda's runtime client comes on top.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench import processor
from bench.deliveries import ROOT, SECRETS, deliveries
from bench.measuring import stub
from bench.recorded import Answer, Recorded, served
from bench.subjects import Subject, variables
from tests.functions.invocations import PAYLOAD_LIMIT
from webhook_inbox.configuration.compile import compile_manifest, write_module
from webhook_inbox.domain.manifest import Manifest

# Bytes of a body; in the event, its quotes are escaped.
LARGEST: Final = 4_700_000
SMALL: Final = 1_000

# Prints the peaks, not by getrusage, which counts what the parent held when it started the process.
MEASURED: Final = """
import json, sys

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

class Context:
    function_name, memory_limit_in_mb, aws_request_id = "function", 512, "id"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:function"
    def get_remaining_time_in_millis(self):
        return 60_000

module, beside, *events = sys.argv[1:]
handler = __import__(module, fromlist=["lambda_handler"]).lambda_handler
peaks, answers = [peak()], []
for name in events:
    with open(name) as file:
        answers.append(handler(json.load(file), Context()))
    peaks.append(peak())
if beside:
    with open(beside, "rb") as file:
        body = file.read()
    parsed = json.loads(body)
    peaks.append(peak())
print(json.dumps({"peaks": peaks, "answers": answers}), file=sys.stderr)
"""


def _ingest(directory: Path) -> list[float]:
    manifest = compile_manifest(ROOT / "functions", stage="dev")
    write_module(manifest, directory)
    sizes = [("stripe", SMALL), *((source, LARGEST) for source in SECRETS)]
    events = [_delivery(manifest, directory, *each) for each in sizes]
    path = os.pathsep.join((str(directory), str(ROOT / "functions")))
    subject = Subject("ingest", "ingest.lambda_function", path, directory / "log")
    with stub() as aws:
        environment = {**variables(subject, aws.endpoint), "SSL_CERT_FILE": str(aws.trusted)}
        # With -S no third-party library is found: ingest has none.
        found = _measured(subject.module, environment, events, options=["-S"])
    if any(answer["statusCode"] not in {200, 202} for answer in found["answers"]):
        raise SystemExit(f"ingest answered {found['answers']}")
    return list(found["peaks"])


def _delivery(manifest: Manifest, directory: Path, source: str, size: int) -> Path:
    [event] = deliveries(manifest, source, size, 1, seed=size)
    path = directory / f"{source}-{size}.json"
    path.write_text(json.dumps(event), encoding="utf-8")
    if path.stat().st_size > PAYLOAD_LIMIT:
        raise SystemExit(f"{path.name}: Lambda takes no {path.stat().st_size:,} bytes")
    return path


def _others(directory: Path, body: Path) -> dict[str, list[float]]:
    built = directory / "functions"
    processor.build(built)
    recorded = processor.record_run(built, *processor.RUNS["one effect"])
    event = directory / "message.json"
    event.write_text(json.dumps(recorded["event"]), encoding="utf-8")
    with served(Recorded([Answer(**each) for each in recorded["answers"]])) as url:
        more = {**recorded["environment"], "AWS_ENDPOINT_URL": url, "SINK_URL": url}
        environment = processor.function_variables(built, **more)
        found = _measured("processor.lambda_function", environment, [event], beside=body)
    if found["answers"] != [{"batchItemFailures": []}]:
        raise SystemExit(f"the processor answered {found['answers']}")
    peaks = {"processor": list(found["peaks"])}
    for name in ("replay", "reconciler"):
        peaks[name] = list(_measured(f"{name}.lambda_function", environment)["peaks"])
    return peaks


def _measured(
    module: str,
    environment: Mapping[str, str],
    events: Sequence[Path] = (),
    *,
    beside: Path | None = None,
    options: Sequence[str] = (),
) -> Any:
    """Returns what MEASURED prints."""
    parts = [*options, "-c", MEASURED, module, beside or "", *events]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *map(str, parts)],
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stderr)


def main() -> None:
    """Measures, and prints a line for each function."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = {"ingest": _ingest(directory)}
        body = directory / "body.json"
        event = json.loads((directory / f"github-{LARGEST}.json").read_text(encoding="utf-8"))
        body.write_text(event["body"], encoding="utf-8")
        found |= _others(directory, body)
    for function, peaks in found.items():
        sys.stdout.write(f"{function:<12}{''.join(f'{peak:8.0f} MB' for peak in peaks)}\n")


if __name__ == "__main__":
    main()
