"""Stages and stacks of one account and region: no name, metric or alarm of one reaches another."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from aws_cdk import App, NestedStack, Stack
from webhook_inbox_cdk import names
from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox

from tests.infra.alarm_states import sources
from tests.infra.conftest import INBOX, write_functions
from tests.infra.template import Template, named
from tests.waiting import eventually
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.__main__ import main
from webhookctl.invocation import World
from webhookctl.local.deployment.assembly import Assembly
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import Front
from webhookctl.local.processes.ministack import Ministack
from webhookctl.local.runtime import api_id

# Two stages, and two stacks of one stage, in one app: their names as CloudFormation has them.
STACKS = {"WebhookInbox-dev": "dev", "WebhookInbox-prod": "prod", "Shop-prod": "prod"}
PEOPLE = '[alarms]\nnotify = ["mailto:team@a.example"]\n'
# Names within a role or an API, an API's display name, and an alarm's metric, which has a test.
SHARED = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudWatch::Alarm",
    "AWS::IAM::Policy",
}
PAIRS = list(combinations(STACKS, 2))
# An event for each stack of a stage, by type; its handlers are in two lanes.
GITHUB = Path(__file__).resolve().parents[2] / "events" / "ingest" / "github"
EVENTS = {
    "issues.opened": GITHUB / "issues.opened__label.json",
    "push": GITHUB / "push__main.json",
}


@pytest.fixture(scope="module")
def assemblies(props: InboxProps, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The assemblies of all stacks, by stack name."""
    functions = write_functions(tmp_path_factory.mktemp("account"), inbox=INBOX + PEOPLE)
    made = {}
    for stack, stage in STACKS.items():
        app = App(outdir=str(tmp_path_factory.mktemp("assembly")), analytics_reporting=False)
        WebhookInbox(Stack(app, stack), "Inbox", replace(props, functions=functions, stage=stage))
        made[stack] = Path(app.synth().directory)
    return made


@pytest.fixture(scope="module")
def account(assemblies: Mapping[str, Path]) -> Mapping[str, Template]:
    """The templates of all stacks, by stack name."""
    return {stack: Template.of(assembly, stack) for stack, assembly in assemblies.items()}


def fixed_names(template: Template) -> set[tuple[str, str]]:
    """The (type, name) of each resource that the template names itself."""
    return {
        (resource["Type"], value)
        for resource in template.body["Resources"].values()
        if resource["Type"] not in SHARED
        for key, value in resource.get("Properties", {}).items()
        if key.endswith("Name") and isinstance(value, str) and "${" not in value
    }


def metrics(template: Template) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """The metrics of each alarm: its id, namespace, name, dimensions."""
    for alarm, properties in template.all("AWS::CloudWatch::Alarm").items():
        for source in sources(properties):
            yield alarm, source.namespace, source.name, source.dimensions


def of_the_inbox(template: Template) -> set[tuple[str, str, str]]:
    """The metrics under the inbox's own namespace, of alarms and of log filters."""
    alarms = {
        (namespace, name, str(sorted(dimensions.items())))
        for _, namespace, name, dimensions in metrics(template)
        if not namespace.startswith("AWS/")
    }
    return alarms | {(*metric, "") for metric in counted(template)}


def counted(template: Template) -> set[tuple[str, str]]:
    """The (namespace, name) of the metrics that log filters count."""
    return {
        (metric["MetricNamespace"], metric["MetricName"])
        for each in template.all("AWS::Logs::MetricFilter").values()
        for metric in each["MetricTransformations"]
    }


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_name_is_taken_twice(account: Mapping[str, Template], one: str, other: str) -> None:
    mine, theirs = fixed_names(account[one]), fixed_names(account[other])
    assert {kind for kind, _ in mine} >= {"AWS::SQS::Queue"}
    assert not mine & theirs


def test_no_secret_is_read_by_both(account: Mapping[str, Template]) -> None:
    prefixes = [named(template.outputs["SecretPrefix"]) for template in account.values()]
    for one, other in combinations(prefixes, 2):
        assert not one.startswith(other)
        assert not other.startswith(one)


def test_no_output_is_an_export(account: Mapping[str, Template]) -> None:
    for template in account.values():
        assert not [name for name, output in template.body["Outputs"].items() if "Export" in output]


def test_log_groups_topics_and_alarms_get_their_names_from_cloudformation(
    account: Mapping[str, Template],
) -> None:
    """Such a name has the stack's name and a random part."""
    for template in account.values():
        for kind, name in (
            ("AWS::Logs::LogGroup", "LogGroupName"),
            ("AWS::SNS::Topic", "TopicName"),
            ("AWS::CloudWatch::Alarm", "AlarmName"),
            ("AWS::Lambda::Function", "FunctionName"),
            ("AWS::IAM::Role", "RoleName"),
            ("AWS::Events::Rule", "Name"),
        ):
            found = template.all(kind).values()
            assert found
            assert not [each for each in found if name in each]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_metric_is_written_or_watched_by_both(
    account: Mapping[str, Template], one: str, other: str
) -> None:
    mine, theirs = of_the_inbox(account[one]), of_the_inbox(account[other])
    assert len(mine) == len(theirs) > 10
    assert not mine & theirs


@pytest.mark.parametrize("stack", STACKS)
def test_an_alarm_watches_what_its_own_stack_writes(
    account: Mapping[str, Template], stack: str
) -> None:
    """A running reconciler of another stage would keep the alarm on a stopped one quiet."""
    template = account[stack]
    written = {
        variables["POWERTOOLS_SERVICE_NAME"]: variables["METRICS_NAMESPACE"]
        for function in template.all("AWS::Lambda::Function").values()
        for variables in [function["Environment"]["Variables"]]
    }
    assert set(written.values()) == {f"WebhookInbox/{stack}"}
    for alarm, namespace, _, dimensions in metrics(template):
        if namespace.startswith("AWS/"):
            owners = [value for value in dimensions.values() if value.startswith("${")]
            assert owners, alarm
            assert {owner[2:-1].partition(".")[0] for owner in owners} <= set(template.ids)
        else:
            assert namespace == f"WebhookInbox/{stack}"


@pytest.mark.parametrize("stack", STACKS)
def test_what_people_read_names_the_stack(account: Mapping[str, Template], stack: str) -> None:
    template = account[stack]
    assert template.one("AWS::SNS::Topic")["DisplayName"] == f"notify {stack}"
    assert template.one("AWS::ApiGatewayV2::Api")["Name"] == stack
    for alarm in template.all("AWS::CloudWatch::Alarm").values():
        assert f"`webhookctl --stack {stack} " in alarm["AlarmDescription"]


def queue(stack: str, lane: str, *, fifo: bool = False) -> str:
    return names.queue_name(Stack(App(), stack), lane, fifo=fifo)


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("WebhookInbox-prod", "eu-default"), ("WebhookInbox-prod-eu", "default")),
        (("WebhookInbox-prod", "a.b"), ("WebhookInbox-prod", "a-b")),
        (("x" * 99 + "-dev", "default"), ("x" * 99 + "-prod", "default")),
        (("x" * 40, "y" * 60), ("x" * 40, "y" * 61)),
    ],
)
def test_queues_of_different_stacks_or_lanes_have_different_names(
    one: tuple[str, str], other: tuple[str, str], fifo: bool
) -> None:
    first, second = queue(*one, fifo=fifo), queue(*other, fifo=fifo)
    assert first != second
    for name in (first, second):
        assert len(name) <= 80
        assert name.endswith(".fifo") == fifo
        assert name.removesuffix(".fifo").replace("-", "").replace("_", "").isalnum()


def test_a_queue_s_name_begins_with_its_stack_s() -> None:
    assert queue("WebhookInbox-prod", "default") == "WebhookInbox-prod_default"


def test_a_nested_stack_is_refused(props: InboxProps) -> None:
    nested = NestedStack(Stack(App(), "Outer"), "Inner")
    with pytest.raises(ConfigurationError, match="put it into a stack of the app"):
        WebhookInbox(nested, "Inbox", props)


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ({}, "WebhookInbox-dev"),
        ({"stage": "prod"}, "WebhookInbox-prod"),
        ({"stack": "WebhookInbox-shop", "stage": "prod"}, "WebhookInbox-shop-prod"),
    ],
)
def test_a_project_and_a_stage_have_a_stack_of_their_own(
    context: Mapping[str, str], name: str
) -> None:
    assert names.stack_name(App(context=context)) == name


@pytest.mark.parametrize("stack", ["web_hooks", "1st", "a b", "x" * 125])
def test_a_stack_name_that_cloudformation_does_not_accept_is_refused(stack: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^stack name '.*-dev', of the context values"):
        names.stack_name(App(context={"stack": stack}))


class Operator:
    """The command line on the deployed stacks of one emulation of AWS."""

    def __init__(self, running: Ministack, capsys: pytest.CaptureFixture[str]) -> None:
        self._running = running
        self._deployer = Deployer(running.client)
        self._capsys = capsys
        self._targets: dict[str, Target] = {}

    def deploy(self, assembly: Assembly, front: Front) -> None:
        outputs = self._deployer.deploy(assembly)
        token = self._running.credentials["AWS_SESSION_TOKEN"]
        ingest = outputs["IngestFunctionName"]
        front.gateway = Gateway(self._running.port, token, api_id(outputs), ingest)
        self._targets[assembly.stack_name] = Target.of(
            assembly.stack_name,
            outputs,
            self._running.client,
            urls={"github": f"{front.url}/webhooks/github"},
            read_manifest=assembly.manifest,
        )

    def __call__(self, stack: str, *words: str) -> str:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words, world=World(connect=lambda _: self._targets[stack]))
        captured = self._capsys.readouterr()
        assert not ended.value.code, captured.err
        return captured.out


def test_two_stacks_of_one_stage_process_their_own_events(
    assemblies: Mapping[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = [stack for stack, stage in STACKS.items() if stage == "prod"]
    with Ministack(tmp_path) as running, ExitStack() as closing:
        call = Operator(running, capsys)
        for stack in pair:
            front = Front(0, lambda _: None).start()
            closing.callback(front.stop)
            call.deploy(Assembly.read(assemblies[stack]), front)
            monkeypatch.setattr("sys.stdin", io.StringIO(f"secret-of-{stack}"))
            call(stack, "secrets", "set", "github")
        for stack, event in zip(pair, EVENTS, strict=True):
            call(stack, "send", str(EVENTS[event]), "--source", "github")
        for stack, event in zip(pair, EVENTS, strict=True):
            done = partial(call, stack, "inbox", "list", "--status", "done", "--json")
            [line] = eventually(done, what=f"the run of {stack}").splitlines()
            assert json.loads(line)["type"] == event
            assert len(call(stack, "inbox", "list", "--json").splitlines()) == 1
