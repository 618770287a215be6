"""Applies a choice to a world and charges the budget."""

from dataclasses import replace
from typing import Final

from simulation.engine import invocations
from simulation.engine.acting import AttemptOutcome
from simulation.engine.choices import TROUBLED_MS, Choice
from simulation.engine.virtual_time import next_moment
from simulation.engine.world import World
from simulation.worlds.scenario import SUCCEEDS, Webhook


def apply(world: World, choice: Choice) -> None:
    """Applies a choice and charges the budget."""
    EFFECTS[choice[0]](world, choice)


def _spend(world: World, kind: str) -> None:
    world.left = replace(world.left, **{kind: getattr(world.left, kind) - 1})


def _step(world: World, choice: Choice) -> None:
    if choice[2] != "ok":
        _spend(world, "faults")
    invocations.step(world, choice[1], choice[2])


def _handles(world: World, choice: Choice) -> None:
    invocations.handle(world, choice[1], outcome_of(world, choice))
    if choice[2] not in {"well", "always"}:
        _spend(world, "failures")


def outcome_of(world: World, choice: Choice) -> AttemptOutcome:
    """Returns the outcome that a choice gives the attempt."""
    call = world.jobs[choice[1]].node.call
    handler = call.args[0] if call else ""
    if choice[2] == "well":
        return SUCCEEDS
    if choice[2] == "always":
        return world.scenario.always[handler]
    return world.scenario.outcomes[handler][int(choice[2])]


def _killed(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.kill(choice[1])


def _freezes(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.freeze(choice[1])


def _sends(world: World, choice: Choice) -> None:
    invocations.deliver(world, webhook_of(world, choice[1]))


def webhook_of(world: World, name: str) -> Webhook:
    """Returns the webhook with this name."""
    return next(webhook for webhook in world.scenario.webhooks if webhook.name == name)


def _receives(world: World, choice: Choice) -> None:
    invocations.receive(world, choice[1], choice[2])


def _throttles(world: World, choice: Choice) -> None:
    # A throttled invocation: the message returns after the visibility timeout.
    _spend(world, "faults")
    world.throttle(choice[1], choice[2])


def _loses(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.lose(choice[1], choice[2])


def _reappears(world: World, choice: Choice) -> None:
    _spend(world, "faults")
    world.reappear(choice[1], choice[2])


def _arrives(world: World, choice: Choice) -> None:
    world.arrive(int(choice[1]))


def _time(world: World, _: Choice) -> None:
    moment = next_moment(world)
    # With no pending moment the world stays as it is.
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


def _says(world: World, choice: Choice) -> None:
    _spend(world, "decisions")
    invocations.say(world, *choice[1:])


def _controls(world: World, choice: Choice) -> None:
    _spend(world, "pauses")
    invocations.control(world, choice[1], paused=choice[0] == "pauses")


def _circuits(world: World, choice: Choice) -> None:
    _spend(world, "openings")
    invocations.circuit(world, choice[1], opened=choice[0] == "opens")


def _erases(world: World, choice: Choice) -> None:
    _spend(world, "erasures")
    invocations.erase(world, choice[1], choice[2])


def _redrives(world: World, choice: Choice) -> None:
    _spend(world, "redrives")
    world.redrive(choice[1])


def _deploys(world: World, choice: Choice) -> None:
    _spend(world, "deployments")
    world.deploy(choice[1])


EFFECTS: Final = {
    "step": _step,
    "handles": _handles,
    "killed": _killed,
    "freezes": _freezes,
    "sends": _sends,
    "receives": _receives,
    "throttles": _throttles,
    "loses": _loses,
    "reappears": _reappears,
    "arrives": _arrives,
    "time": _time,
    "reconciles": _reconciles,
    "ages": _ages,
    "expires": _expires,
    "replays": _replays,
    "decides": _decides,
    "says": _says,
    "pauses": _controls,
    "resumes": _controls,
    "opens": _circuits,
    "closes": _circuits,
    "erases": _erases,
    "redrives": _redrives,
    "deploys": _deploys,
}
