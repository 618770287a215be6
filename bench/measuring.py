"""Runs the measured processes in rounds: each step is made by every handler before the next."""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Any, Final
from urllib.request import urlopen

from bench import certificate
from bench.certificate import Certificate
from bench.deliveries import ROOT, SECRETS, SIZES, deliveries
from bench.subjects import DOCUMENT, PYTHON, Subject, Subjects, variables

PROBE: Final = ROOT / "bench" / "probe.py"
# The handlers take turns with so many blocks of events, so that other work hits all of them alike.
BLOCKS: Final = 5
# The events of a block, by the name of their size.
EVENTS: Final = {"1 KB": 30, "10 KB": 20, "100 KB": 8, "1 MB": 3}
# Those before them load what a source needs and open its connections.
WARM_UP: Final = 5
# A source, and the name of a size.
Cell = tuple[str, str]
CELLS: Final = tuple(product(SECRETS, SIZES))
COLD: Final[Cell] = ("stripe", "1 KB")


@dataclass(frozen=True, slots=True)
class Measured:
    """A process's figures, each for one event: CPU in seconds and AWS calls.

    `wall` is the seconds from the start of a cold process to its answer.
    """

    cpu: float
    calls: float
    wall: float = 0.0


# The figures of one round by cell and handler.
Round = Mapping[Cell, Mapping[str, Measured]]


class Stub:
    """AWS on loopback, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], certificate: Certificate) -> None:
        assert process.stdout is not None  # noqa: S101 - narrows the type
        self.endpoint = f"https://localhost:{int(process.stdout.readline())}"
        self.trusted = certificate.trusted
        self._tls = ssl.create_default_context(cafile=str(certificate.own))

    def counts(self) -> dict[str, int]:
        """Returns the requests by operation since the last call."""
        with urlopen(f"{self.endpoint}/counts", context=self._tls) as answer:  # noqa: S310
            return dict(json.load(answer))


@contextmanager
def stub() -> Iterator[Stub]:
    """Runs the stub."""
    pipe = subprocess.PIPE
    with tempfile.TemporaryDirectory() as directory:
        made = certificate.make(Path(directory))
        command = [sys.executable, "-m", "bench.stub", str(made.own), DOCUMENT]
        with subprocess.Popen(command, cwd=ROOT, text=True, stdin=pipe, stdout=pipe) as process:  # noqa: S603
            yield Stub(process, made)
            process.stdin.close()  # type: ignore[union-attr] # it has one


class Probe:
    """A running handler."""

    def __init__(self, subject: Subject, process: subprocess.Popen[str], report: IO[str]) -> None:
        self._subject = subject
        self._process = process
        self._report = report

    def answer(self, events: Path) -> dict[str, Any]:
        """Returns the figures of a file of events; each must be accepted."""
        assert self._process.stdin is not None  # noqa: S101 - narrows the type
        self._process.stdin.write(f"{events}\n")
        self._process.stdin.flush()
        line = self._report.readline()
        figures: dict[str, Any] = json.loads(line) if line else {"statuses": ["no answer"]}
        if set(figures["statuses"]) not in ({200}, {202}):
            raise RuntimeError(f"{self._subject.name} answered {set(figures['statuses'])}")
        return figures


@contextmanager
def probe(subject: Subject, stub: Stub) -> Iterator[Probe]:
    """Starts a handler's process; its output goes to a file, as it goes to a pipe in Lambda."""
    read, write = os.pipe()
    began = time.monotonic()
    command = [str(PYTHON), "-S", str(PROBE), subject.module, str(write), str(began)]
    log = subject.log.open("wb")
    with log, os.fdopen(read) as report:
        process = subprocess.Popen(  # noqa: S603
            command,
            env={**variables(subject, stub.endpoint), **_trust(stub.trusted)},
            stdin=subprocess.PIPE,
            stdout=log,
            pass_fds=[write],
            text=True,
        )
        os.close(write)
        with process:
            yield Probe(subject, process, report)


def _trust(bundle: Path) -> dict[str, str]:
    """Returns the variables by which OpenSSL and botocore find a bundle of authorities."""
    return dict.fromkeys(("SSL_CERT_FILE", "AWS_CA_BUNDLE"), str(bundle))


class Laboratory:
    """Measures handlers against a stub, with files of events in a directory."""

    def __init__(self, subjects: Subjects, stub: Stub, directory: Path) -> None:
        self._subjects = subjects
        self._stub = stub
        self._directory = directory

    def warm(
        self, number: int, *, cells: Iterable[Cell] = CELLS, names: Iterable[str] = ()
    ) -> Round:
        """Returns a round's figures: one process of each handler, all alive at the same time.

        Args:
            number: the round; seeds the events.
            cells: what to measure.
            names: the handlers; all by default.
        """
        with ExitStack() as closing:
            probes = {
                s.name: closing.enter_context(probe(s, self._stub)) for s in self._chosen(names)
            }
            return {cell: self._cell(cell, number, probes) for cell in cells}

    def _cell(self, cell: Cell, number: int, probes: Mapping[str, Probe]) -> Mapping[str, Measured]:
        seed, size = (BLOCKS + 1) * number, EVENTS[cell[1]]
        first = self._events(cell, WARM_UP, seed=seed)
        for running in probes.values():
            running.answer(first)
        self._stub.counts()
        cpu, calls = dict.fromkeys(probes, 0.0), dict.fromkeys(probes, 0)
        for block in range(1, BLOCKS + 1):
            events = self._events(cell, size, seed=seed + block)
            for name, running in probes.items():
                cpu[name] += running.answer(events)["cpu"]
                calls[name] += sum(self._stub.counts().values())
        count = BLOCKS * size
        return {name: Measured(cpu[name] / count, calls[name] / count) for name in probes}

    def cold(self, number: int, *, names: Iterable[str] = ()) -> Mapping[str, Measured]:
        """Returns a round's figures: a new process of each handler answers one event."""
        events, found = self._events(COLD, 1, seed=number), {}
        for subject in self._chosen(names):
            self._stub.counts()
            with probe(subject, self._stub) as running:
                figures = running.answer(events)
            calls = sum(self._stub.counts().values())
            found[subject.name] = Measured(figures["total"], calls, figures["wall"])
        return found

    def _chosen(self, names: Iterable[str]) -> list[Subject]:
        return [s for s in self._subjects.all if not names or s.name in names]

    def _events(self, cell: Cell, count: int, *, seed: int) -> Path:
        (source, size), manifest = cell, self._subjects.manifest
        made = deliveries(manifest, source, SIZES[size], count, seed=seed)
        path = self._directory / f"{source}-{SIZES[size]}-{count}.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        return path
