"""The deployed functions: their names, their warm-up, their code."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from webhookctl.errors import CommandError

TAKEN_ALONG: Final = "Worker process exited immediately"
TRIES: Final = 3
RAISED: Final = "Runtime.HandlerError"
# Invocations that start a function's imports and change nothing.
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
    "replay": {"dry_run": True, "limit": 1, "reason": "warm-up"},
    "reconciler": {},
}


@dataclass(frozen=True, slots=True)
class Deployed:
    """One function: what it does (`ingest`, `processor` …), its name, and what to call it."""

    kind: str
    name: str
    shown: str


def deployed(outputs: Mapping[str, str]) -> tuple[Deployed, ...]:
    """Returns the functions that a stack's outputs name."""
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
    """Works on deployed functions."""

    def __init__(self, clients: Callable[[str], Any]) -> None:
        """Takes service name to boto3 client."""
        self._lambda = clients("lambda")

    def warm(self, functions: Mapping[Deployed, int]) -> None:
        """Starts so many workers of each function, all at once.

        Left to the first requests, the cold starts would come together and stall them for
        seconds. Raises CommandError with the function's own words where one cannot be imported.
        """
        wanted = [function for function, times in functions.items() for _ in range(times)]
        with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
            failures = [failure for failure in pool.map(self._lasting_failure, wanted) if failure]
        if failures:
            # A worker that cannot start takes its like with it: the first to go knows why.
            raise CommandError(min(failures, key=lambda failure: TAKEN_ALONG in failure))

    def replace_code(self, function: Deployed, archive: bytes, *, version: str) -> None:
        """Gives a function other code; what is running in it at this moment is lost."""
        self._lambda.update_function_code(FunctionName=function.name, ZipFile=archive)
        found = self._lambda.get_function_configuration(FunctionName=function.name)
        variables = {**found["Environment"]["Variables"], "CODE_VERSION": version}
        self._lambda.update_function_configuration(
            FunctionName=function.name, Environment={"Variables": variables}
        )

    def log_group(self, function: Deployed) -> str:
        """Returns where a function logs."""
        found = self._lambda.get_function_configuration(FunctionName=function.name)
        group = found.get("LoggingConfig", {}).get("LogGroup")
        return str(group or f"/aws/lambda/{function.name}")

    def _lasting_failure(self, function: Deployed) -> str:
        # A worker that ended without a word was most likely taken along, by another's start or
        # by a change of its function's code: another one says what is really wrong, if anything.
        for _ in range(TRIES):
            failure = self._failure(function)
            if TAKEN_ALONG not in failure:
                break
        return failure

    def _failure(self, function: Deployed) -> str:
        payload = json.dumps(HARMLESS[function.kind]).encode()
        try:
            answer = self._lambda.invoke(FunctionName=function.name, Payload=payload)
        except ClientError as error:
            return f"{function.shown} cannot be invoked: {error}"
        content = json.loads(answer["Payload"].read() or b"null")
        # What a function raises, it raises after its imports: Powertools refuses no records.
        if "FunctionError" not in answer or content.get("errorType") == RAISED:
            return ""
        said = " ".join(str(content.get("errorMessage", content)).split())
        return f"{function.shown} cannot run: {said}"
