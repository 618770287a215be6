"""How a world begins: the letters that are there already have been accepted, undisturbed."""

from simulation.engine import invocations
from simulation.engine.world import World


def opened(world: World) -> World:
    """Returns the world once the letters have come that are there before all else."""
    for letter in world.scenario.letters:
        if letter.there:
            invocations.deliver(world, letter)
            while world.jobs:
                invocations.step(world, "ingest 1", "ok")
    return world
