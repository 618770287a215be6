"""Secrets outlive what happens to the stack, and one that was made by hand needs no import."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.project import REPOSITORY
from tests.waiting import eventually
from tests.webhookctl.local.projects import INBOX, accepted, write_functions
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.deployment.functions import Fleet, deployed
from webhookctl.local.deployment.synth import Project, synthesize
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import Front
from webhookctl.local.processes.ministack import Ministack
from webhookctl.local.runtime import api_id

STACK = "WebhookInbox-local"
PREFIX = f"webhook-inbox/{STACK}/"
GITHUB = '[sources.github]\nprovider = "github"\n'
WITHOUT_GITHUB = INBOX.replace(GITHUB, "")


def test_secrets_survive_a_removed_source_a_destroyed_stack_and_being_made_by_hand(
    ministack: Ministack, serve: Callable[[Gateway | None], Front], tmp_path: Path
) -> None:
    whole, less = (write_functions(tmp_path / name / "functions") for name in ("whole", "less"))
    (less / "inbox.toml").write_text(WITHOUT_GITHUB)
    (less / "handlers" / "notes.py").unlink()
    (less / "handlers" / "__init__.py").write_text("MODULES = ()\n")
    vault = ministack.client("secretsmanager")
    # In the console, before the first deployment.
    by_hand = '{"github": "made-by-hand", "billing": "made-by-hand-too"}'
    vault.create_secret(Name=PREFIX + SOURCES, SecretString=by_hand)

    def deploy(functions: Path) -> dict[str, str]:
        project = Project(REPOSITORY, functions, functions.parent / "state")
        return Deployer(ministack.client).deploy(synthesize(project))

    def takes(outputs: dict[str, str], title: str) -> bool:
        Fleet(ministack.client).warm({f: 1 for f in deployed(outputs) if f.kind == "ingest"})
        token = ministack.credentials["AWS_SESSION_TOKEN"]
        ingest = outputs["IngestFunctionName"]
        front = serve(Gateway(ministack.port, token, api_id(outputs), ingest))
        return accepted(front.url, "made-by-hand", title)

    first = deploy(whole)
    documents = SecretDocuments(vault, first["SecretPrefix"])
    documents.set(HANDLERS, "crm-token", "set-by-the-command-line")
    assert first["SecretPrefix"] == PREFIX

    assert "WebhookUrlGithub" not in deploy(less)
    assert takes(deploy(whole), "made by hand, removed and added again")

    formation = ministack.client("cloudformation")
    formation.delete_stack(StackName=STACK)
    assert eventually(lambda: _gone(formation))
    again = deploy(whole)

    assert takes(again, "destroyed and deployed again")
    assert documents.read(SOURCES)["billing"] == ("made-by-hand-too",)
    assert documents.read(HANDLERS) == {"crm-token": ("set-by-the-command-line",)}


def _gone(formation: Any) -> bool:
    stacks = formation.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    return any(stack["StackName"] == STACK for stack in stacks)
