"""The inbox of the commands, for agents."""

from tests.webhookctl.commands.conftest import _alone, _one_command_tree, cli, inbox

__all__ = ["_alone", "_one_command_tree", "cli", "inbox"]
