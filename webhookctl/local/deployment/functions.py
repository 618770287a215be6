"""The deployed functions: names, warm-up and code updates."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from webhookctl.errors import CommandError

RAISED: Final = "Runtime.HandlerError"
# Invocations that import a function's code without side effects.
HARMLESS: Final[Mapping[str, Any]] = {
    "ingest": {
        "version": "2.0",
        "rawPath": "/warm-up",
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"http": {"method": "GET", "path": "/warm-up"}},
        "isBase64Encoded": False,
    },
    "processor": {"Records": []},
    "replay": {"status": ["dead_letter"], "dry_run": True, "limit": 1, "reason": "warm-up"},
    "reconciler": {},
}


@dataclass(frozen=True, slots=True)
class Deployed:
    """A function: its kind (`ingest`, `processor` …), its name, and its displayed name."""

    kind: str
    name: str
    shown: str


def deployed(outputs: Mapping[str, str]) -> tuple[Deployed, ...]:
    """Returns the functions of a stack's outputs."""
    lanes: dict[str, str] = json.loads(outputs["ProcessorFunctionNames"])
    processors = [
        Deployed("processor", name, "processor" if len(lanes) == 1 else f"processor/{lane}")
        for lane, name in lanes.items()
    ]
    return (
        Deployed("ingest", outputs["IngestFunctionName"], "ingest"),
        *processors,
        Deployed("replay", outputs["ReplayFunctionName"], "replay"),
        Deployed("reconciler", outputs["ReconcilerFunctionName"], "reconciler"),
    )


class Fleet:
    """Warms up and updates deployed functions; `clients` maps service names to clients."""

    def __init__(self, clients: Callable[[str], Any]) -> None:
        self._lambda = clients("lambda")

    def warm(self, functions: Mapping[Deployed, int]) -> None:
        """Starts the given number of workers of each function, concurrently.

        Otherwise the cold starts would delay the first requests by seconds. Raises CommandError
        with the function's error where it cannot be imported.
        """
        wanted = [function for function, times in functions.items() for _ in range(times)]
        with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
            failures = [failure for failure in pool.map(self._failure, wanted) if failure]
        if failures:
            raise CommandError(failures[0])

    def replace_code(self, function: Deployed, archive: bytes, *, version: str) -> None:
        """Replaces a function's code; invocations in progress finish with the previous code."""
        self._lambda.update_function_code(FunctionName=function.name, ZipFile=archive)
        found = self._lambda.get_function_configuration(FunctionName=function.name)
        variables = {**found["Environment"]["Variables"], "CODE_VERSION": version}
        self._lambda.update_function_configuration(
            FunctionName=function.name, Environment={"Variables": variables}
        )

    def log_group(self, function: Deployed) -> str:
        """Returns a function's log group."""
        found = self._lambda.get_function_configuration(FunctionName=function.name)
        group = found.get("LoggingConfig", {}).get("LogGroup")
        return str(group or f"/aws/lambda/{function.name}")

    def _failure(self, function: Deployed) -> str:
        payload = json.dumps(HARMLESS[function.kind]).encode()
        try:
            answer = self._lambda.invoke(FunctionName=function.name, Payload=payload)
        except ClientError as error:
            return f"{function.shown} cannot be invoked: {error}"
        content = json.loads(answer["Payload"].read() or b"null")
        # Errors of the handler come after its imports: Powertools rejects an empty batch.
        if "FunctionError" not in answer or content.get("errorType") == RAISED:
            return ""
        said = " ".join(str(content.get("errorMessage", content)).split())
        return f"{function.shown} cannot run: {said}"
