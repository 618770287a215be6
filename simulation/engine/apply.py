"""Letting a choice happen, at the expense of the budget."""

from dataclasses import replace
from typing import Final

from simulation.engine import invocations
from simulation.engine.acting import Verdict
from simulation.engine.choices import TROUBLED_MS, Choice
from simulation.engine.virtual_time import next_moment
from simulation.engine.world import World
from simulation.worlds.scenario import SUCCEEDS, Letter


def take(world: World, choice: Choice) -> None:
    """Lets it happen, at the expense of the budget."""
    TAKERS[choice[0]](world, choice)


def _spend(world: World, kind: str) -> None:
    world.left = replace(world.left, **{kind: getattr(world.left, kind) - 1})


def _step(world: World, choice: Choice) -> None:
    if choice[2] != "ok":
        _spend(world, "faults")
    invocations.step(world, choice[1], choice[2])


def _handles(world: World, choice: Choice) -> None:
    invocations.handle(world, choice[1], verdict_of(world, choice))
    if choice[2] not in {"well", "always"}:
        _spend(world, "misdeeds")


def verdict_of(world: World, choice: Choice) -> Verdict:
    """Returns how a handler goes."""
    call = world.jobs[choice[1]].place.call
    handler = call.args[0] if call else ""
    if choice[2] == "well":
        return SUCCEEDS
    if choice[2] == "always":
        return world.scenario.always[handler]
    return world.scenario.verdicts[handler][int(choice[2])]


def _killed(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.kill(choice[1])


def _freezes(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.freeze(choice[1])


def _sends(world: World, choice: Choice) -> None:
    invocations.deliver(world, letter_of(world, choice[1]))


def letter_of(world: World, name: str) -> Letter:
    """Returns the letter of this name."""
    return next(letter for letter in world.scenario.letters if letter.name == name)


def _receives(world: World, choice: Choice) -> None:
    invocations.receive(world, choice[1], choice[2])


def _burns(world: World, choice: Choice) -> None:
    # A throttled invocation: received, never processed, back after the visibility timeout.
    _spend(world, "faults")
    world.burn(choice[1], choice[2])


def _loses(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.lose(choice[1], choice[2])


def _shows(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.show(choice[1], choice[2])


def _lands(world: World, choice: Choice) -> None:
    world.land(int(choice[1]))


def _time(world: World, _: Choice) -> None:
    moment = next_moment(world)
    # Where nothing is to be waited for, nothing changes.
    if moment is not None and moment <= world.era + TROUBLED_MS:
        _spend(world, "jumps")
        world.advance(moment)


def _reconciles(world: World, _: Choice) -> None:
    _spend(world, "passes")
    invocations.reconcile(world)


def _ages(world: World, choice: Choice) -> None:
    _spend(world, "ages")
    world.age(int(choice[1]))


def _expires(world: World, _: Choice) -> None:
    world.expire()


def _replays(world: World, choice: Choice) -> None:
    _spend(world, "replays")
    invocations.replay(world, int(choice[1]))


def _decides(world: World, choice: Choice) -> None:
    _spend(world, "decisions")
    invocations.decide(world, *choice[1:])


def _controls(world: World, choice: Choice) -> None:
    _spend(world, "pauses")
    invocations.control(world, choice[1], paused=choice[0] == "pauses")


def _redrives(world: World, choice: Choice) -> None:
    _spend(world, "redrives")
    world.redrive(choice[1])


def _deploys(world: World, choice: Choice) -> None:
    _spend(world, "deployments")
    world.deploy(choice[1])


TAKERS: Final = {
    "step": _step,
    "handles": _handles,
    "killed": _killed,
    "freezes": _freezes,
    "sends": _sends,
    "receives": _receives,
    "burns": _burns,
    "loses": _loses,
    "shows": _shows,
    "lands": _lands,
    "time": _time,
    "reconciles": _reconciles,
    "ages": _ages,
    "expires": _expires,
    "replays": _replays,
    "decides": _decides,
    "pauses": _controls,
    "resumes": _controls,
    "redrives": _redrives,
    "deploys": _deploys,
}
