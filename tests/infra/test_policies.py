"""The managed policies, evaluated over the calls that commands make."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from webhook_inbox_cdk.policies import AUDIT_ATTRIBUTES, CONCLUSION, DECISION

from tests.docs.pages import ROOT
from tests.infra.template import Template, named
from tests.unit.support.approving import ApprovingWorld
from tests.unit.support.holding import deciding, effect, hold
from tests.unit.support.people import person
from tests.unit.support.world import World
from tests.webhookctl.commands.every_command import EFFECTS
from webhook_inbox import Approval
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.request_row import Word

# The policies that a role has.
ROLES = {
    "reader": ("Reader",),
    "operator": ("Reader", "Operator"),
    "approver": ("Reader", "Approver"),
}
KINDS = {
    "${InboxLedgerTable": "table",
    "${InboxBodiesBucket": "bucket",
    "${InboxLanedefaultWork": "work",
    "${InboxLaneslowWork": "work",
    "${InboxLanedefaultDead": "dead",
    "${InboxLaneslowDead": "dead",
    "${InboxReplay": "replay",
    "${AWS::StackId}": "stack",
}
# A call of a check of `doctor`: its service and its operation in botocore.
READS = re.compile(r'reader\.(?:call|pages)\(\s*"([a-z]+)",\s*"([a-z_]+)"')
LOG_GROUPS = ("${InboxIngestLogs", "${InboxProcessor", "${InboxReplayLogs", "${InboxReconcilerLogs")
# ARNs that end with a name, or with a pattern of names.
NAMED = tuple(
    f"arn:${{AWS::Partition}}:{service}:" for service in ("cloudwatch", "sns", "lambda", "events")
)
DOCUMENT = ":secret:webhook-inbox/Inbox/"
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
POLICY_CHARACTERS = 6144


@dataclass(frozen=True)
class Call:
    """One AWS call: its action, its resource, and for DynamoDB what IAM sees of the row."""

    action: str
    on: str
    key: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def context(self) -> dict[str, tuple[str, ...]]:
        found = {"dynamodb:LeadingKeys": (self.key,) if self.key else ()}
        return {**found, "dynamodb:Attributes": self.attributes}


def _kind(resource: str) -> str:
    """A statement's resource by a short name."""
    if resource.startswith(LOG_GROUPS):
        return "logs"
    for start, kind in KINDS.items():
        if resource.startswith(start):
            rest = resource.partition("}")[2]
            return kind + (rest if kind in {"table", "bucket"} else "")
    if DOCUMENT in resource:
        return "secret/" + resource.partition(DOCUMENT)[2].removesuffix("-??????")
    return resource.rpartition(":")[2] if resource.startswith(NAMED) else resource


def _holds(condition: Mapping[str, Mapping[str, Any]], call: Call) -> bool:
    return all(
        _fits(operator, call.context[name], [values] if isinstance(values, str) else values)
        for operator, tests in condition.items()
        for name, values in tests.items()
    )


def _fits(operator: str, found: Iterable[str], patterns: Iterable[str]) -> bool:
    quantifier, _, test = operator.partition(":")
    negated = test == "StringNotEquals"
    match = fnmatchcase if test == "StringLike" else str.__eq__
    results = [any(match(value, each) for each in patterns) is not negated for value in found]
    return {"ForAllValues": all, "ForAnyValue": any}[quantifier](results)


def statements(template: Template, role: str) -> list[Mapping[str, Any]]:
    return [
        statement
        for name in ROLES[role]
        for statement in template.one("AWS::IAM::ManagedPolicy", name)["PolicyDocument"][
            "Statement"
        ]
    ]


def allowed(template: Template, role: str, call: Call) -> bool:
    """Returns whether a role with these policies may make a call; a Deny precedes every Allow."""
    effects = {
        statement["Effect"]
        for statement in statements(template, role)
        if call.action in _listed(statement["Action"])
        and any(fnmatchcase(call.on, _kind(named(r))) for r in _listed(statement["Resource"]))
        and _holds(statement.get("Condition", {}), call)
    }
    return effects == {"Allow"}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


RUN = ("pk", "sk", "status", "generation", "last_at")
AUDIT = Call("dynamodb:PutItem", "table", "audit#2026-01-01", AUDIT_ATTRIBUTES)
HISTORY = Call("dynamodb:PutItem", "table", "event#stripe#evt-1", AUDIT_ATTRIBUTES)
CONCLUDE = Call("dynamodb:UpdateItem", "table", "audit#2026-01-01", ("pk", "counts"))
AUDITED = (AUDIT, HISTORY, CONCLUDE)
INVOKE = Call("lambda:InvokeFunction", "replay")
SEND = Call("sqs:SendMessage", "work")
READ = (
    Call("cloudformation:DescribeStacks", "stack"),
    Call("cloudformation:GetTemplateSummary", "stack"),
    Call("dynamodb:Query", "table", "event#stripe#evt-1"),
    Call("dynamodb:GetItem", "table", "control"),
    Call("dynamodb:BatchGetItem", "table", "event#stripe#evt-1"),
    Call("dynamodb:Query", "table/index/by_due", "wake#stripe.book#0"),
    Call("dynamodb:Query", "table/index/by_received", "2026-01-01T00#0"),
)
CHANGE_SECRET = (
    Call("secretsmanager:GetSecretValue", "secret/sources"),
    Call("secretsmanager:PutSecretValue", "secret/sources"),
    Call("secretsmanager:CreateSecret", "secret/sources"),
)
QUEUES = (Call("sqs:GetQueueAttributes", "work"), Call("sqs:GetQueueAttributes", "dead"))
# The calls of each command besides READ.
READING = {
    "inbox list": (),
    "inbox inspect --body": (Call("s3:GetObject", "bucket/bodies/ab"),),
    "rejected show --body": (Call("s3:GetObject", "bucket/rejected/ab"),),
    "audit": (Call("dynamodb:Query", "table", "audit#2026-01-01"),),
    "doctor": (
        Call("cloudformation:ListStackResources", "stack"),
        *QUEUES,
        Call("cloudwatch:DescribeAlarms", "*"),
        Call("cloudwatch:GetMetricData", "*"),
        Call("events:DescribeRule", "rule/Inbox-Schedule"),
        Call("lambda:GetEventSourceMapping", "8a5e"),
        Call("lambda:GetFunctionConfiguration", "Inbox-Processor"),
        Call("logs:FilterLogEvents", "logs"),
        Call("sns:ListSubscriptionsByTopic", "Inbox-Page"),
    ),
    "alarms list": (
        Call("cloudwatch:DescribeAlarms", "*"),
        Call("sns:ListSubscriptionsByTopic", "Inbox-Page"),
    ),
    "dlq list": QUEUES,
    "inbox export --to DIRECTORY": (Call("s3:GetObject", "bucket/bodies/ab"),),
    "inbox errors": (),
    "inbox ignored": (),
    "inbox search": (Call("s3:GetObject", "bucket/bodies/ab"),),
    "inbox tail": (),
    "listen": (Call("s3:GetObject", "bucket/bodies/ab"),),
    "hold list": (),
    "handlers list": (),
    "destinations list": (),
    "tenants list": (),
    "rejected list": (),
    "saved queries": (Call("logs:StartQuery", "logs"), Call("logs:GetQueryResults", "*")),
}
CONTROL = Call("dynamodb:UpdateItem", "table", "control", ("pk", "paused", "by", "reason", "at"))
BREAKER = Call("dynamodb:UpdateItem", "table", "breaker#crm", ("pk", "open_until", "manual"))
OPERATING = {
    "replay": (*AUDITED, INVOKE),
    "skip": (
        *AUDITED,
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", (*RUN, "last_error", "done_at")),
        Call("dynamodb:DeleteItem", "table", "ordering_key#stripe.book#c-1"),
    ),
    "handlers pause": (*AUDITED, CONTROL),
    "complete": (
        *AUDITED,
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", ("pk", "ended_by", "result")),
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", (*RUN, "waits_for")),
        SEND,
    ),
    "rejected release": (
        *AUDITED,
        Call("secretsmanager:GetSecretValue", "secret/sources"),
        Call("dynamodb:PutItem", "table", "event#stripe#evt-1", ("pk", "body", "held", "runs")),
        Call("s3:PutObject", "bucket/bodies/ab"),
        SEND,
    ),
    "secrets set": (*AUDITED, *CHANGE_SECRET),
    "secrets list": (CHANGE_SECRET[0],),
    "secrets status": (CHANGE_SECRET[0], Call("cloudwatch:GetMetricData", "*")),
    "secrets rotate": (*AUDITED, *CHANGE_SECRET),
    "secrets revoke": (*AUDITED, *CHANGE_SECRET),
    "secrets enrol": (
        *AUDITED,
        *CHANGE_SECRET,
        Call("dynamodb:PutItem", "table", "enrolment#acme", ("pk", "sk", "until")),
    ),
    "sources reconcile": (*AUDITED, Call("secretsmanager:GetSecretValue", "secret/tools")),
    "handlers resume": (*AUDITED, CONTROL),
    "tenants pause": (*AUDITED, CONTROL),
    "tenants resume": (*AUDITED, CONTROL),
    "destinations open": (*AUDITED, BREAKER),
    "destinations close": (*AUDITED, BREAKER),
    "erase": (
        *AUDITED,
        Call("dynamodb:Query", "table/index/by_received", "2026-01-01T00#0"),
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", ("pk", "body", "erased_at")),
        Call("dynamodb:UpdateItem", "table", "conflict#stripe#evt-1", ("pk", "body")),
        Call("dynamodb:UpdateItem", "table", "effect#pay#7", ("pk", "sk", "error")),
        Call("s3:ListBucket", "bucket"),
        Call("s3:DeleteObject", "bucket/bodies/ab"),
    ),
    "SQS's redrive": (
        Call("sqs:ReceiveMessage", "dead"),
        Call("sqs:ChangeMessageVisibility", "dead"),
    ),
    "smoke": (
        *CHANGE_SECRET,
        INVOKE,
        SEND,
        Call("sqs:DeleteMessage", "dead"),
        Call("dynamodb:DeleteItem", "table", "event#smoke#smoke-1-works"),
        Call("dynamodb:DeleteItem", "table", "smoke"),
    ),
    "alarms test": (*AUDITED, Call("cloudwatch:SetAlarmState", "Inbox-Alarm")),
}
APPROVING = {
    "hold approve": (
        *AUDITED,
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", DECISION),
        Call("dynamodb:UpdateItem", "table", "effect#refund#pay-7", ("pk", "status", "result")),
        SEND,
    ),
}
# The commands of operators and approvers alike.
EITHER = {
    "hold deny": (
        *AUDITED,
        Call("dynamodb:UpdateItem", "table", "event#stripe#evt-1", (*RUN, "held", "last_error")),
    ),
    "inbox inspect --show-personal": (AUDIT, HISTORY, Call("s3:GetObject", "bucket/bodies/ab")),
}
# Commands that make other calls than these to AWS, or none.
OTHERS = {
    *("check", "completion", "conformance", "dev", "init", "preflight", "runbook", "send"),
    "cost",
    *("console", "verify", "mcp"),  # its pages and an agent's tools are the commands above
}
# The calls that no policy allows.
NEVER = (
    Call("dynamodb:DeleteItem", "table", "audit#2026-01-01"),
    Call("dynamodb:UpdateItem", "table", "audit#2026-01-01", ("pk", "by")),
    Call("dynamodb:UpdateItem", "table", "audit#2026-01-01", ("pk", "counts", "reason")),
    Call("dynamodb:DeleteItem", "table", "event#stripe#evt-1"),
    Call("dynamodb:Scan", "table"),
    Call("secretsmanager:DeleteSecret", "secret/sources"),
    Call("secretsmanager:GetSecretValue", "secret/another"),
    Call("s3:DeleteObject", "bucket/rejected/ab"),
    Call("sqs:PurgeQueue", "dead"),
    Call("lambda:UpdateFunctionCode", "replay"),
)


def refused(template: Template, role: str, calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if not allowed(template, role, call)]


@pytest.mark.parametrize(("role", "command"), list(product(ROLES, READING)))
def test_every_role_reads(dev: Template, role: str, command: str) -> None:
    assert refused(dev, role, (*READ, *READING[command])) == []


@pytest.mark.parametrize("command", OPERATING)
def test_only_an_operator_operates(dev: Template, command: str) -> None:
    assert refused(dev, "operator", OPERATING[command]) == []
    for other in ("reader", "approver"):
        assert refused(dev, other, OPERATING[command]), other


@pytest.mark.parametrize("command", APPROVING)
def test_an_approver_decides(dev: Template, command: str) -> None:
    assert refused(dev, "approver", APPROVING[command]) == []
    assert refused(dev, "reader", APPROVING[command])


@pytest.mark.parametrize("command", EITHER)
def test_operators_and_approvers_deny_and_see_personal_fields(dev: Template, command: str) -> None:
    for role in ("operator", "approver"):
        assert refused(dev, role, EITHER[command]) == [], role
    assert refused(dev, "reader", EITHER[command])


@pytest.mark.parametrize("action", ["dynamodb:UpdateItem", "dynamodb:PutItem"])
def test_an_operator_may_not_approve(dev: Template, action: str) -> None:
    approval = Call(action, "table", "event#stripe#evt-1", DECISION)
    assert not allowed(dev, "operator", approval)


@pytest.mark.parametrize("attribute", ["decisions", "state"])
@pytest.mark.parametrize("action", ["dynamodb:UpdateItem", "dynamodb:PutItem"])
def test_an_operator_forges_no_decision_of_the_people_who_are_asked(
    asking: Template, dev: Template, action: str, attribute: str
) -> None:
    forged = Call(action, "table", "event#stripe#evt-1", ("pk", "sk", attribute))
    assert not allowed(asking, "operator", forged)
    # Without people there is no such row, and the policy stays as it was.
    assert allowed(dev, "operator", forged)


@pytest.mark.parametrize("word", list(Word))
def test_an_approvers_decision_changes_no_other_attributes_of_a_request(
    asking: Template, dev: Template, word: Word, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ApprovingWorld(approval=Approval(by="finance"))
    world.asked()
    hold = ApprovalRequest(world.held())
    made: list[Call] = []
    update, put = world.table.update, world.table.put

    def updated(key: Key, change: Change, **given: Any) -> Item:
        names = {*change.set, *change.default, *change.add, *change.remove}
        made.append(Call("dynamodb:UpdateItem", "table", key.pk, ("pk", "sk", *sorted(names))))
        return update(key, change, **given)

    def written(item: Item, **given: Any) -> None:
        made.append(Call("dynamodb:PutItem", "table", item["pk"], tuple(item)))
        put(item, **given)

    monkeypatch.setattr(world.table, "update", updated)
    monkeypatch.setattr(world.table, "put", written)
    decide = world.approvals.approve if word is Word.APPROVE else world.approvals.deny
    decide(hold, by=replace(person("ann"), on_behalf_of="a"), reason="r")

    assert any("decisions" in call.attributes for call in made)
    assert refused(asking, "approver", made) == []
    assert refused(asking, "operator", made)
    assert refused(dev, "approver", made)


@pytest.mark.parametrize("call", [INVOKE, *CHANGE_SECRET, Call("s3:PutObject", "bucket/bodies/ab")])
def test_an_approver_replays_nothing_and_reads_no_secret(dev: Template, call: Call) -> None:
    assert not allowed(dev, "approver", call)


def test_an_approver_puts_rows_of_the_audit_only(dev: Template) -> None:
    run = Call("dynamodb:PutItem", "table", "event#stripe#evt-1", RUN)
    guard = Call("dynamodb:PutItem", "table", "guard#stripe#ab", AUDIT_ATTRIBUTES)
    assert refused(dev, "approver", (run, guard)) == [run, guard]


@pytest.mark.parametrize(("role", "call"), list(product(ROLES, NEVER)))
def test_no_role_removes_traces(dev: Template, role: str, call: Call) -> None:
    assert not allowed(dev, role, call)


@pytest.mark.parametrize("action", ["PutItem", "UpdateItem", "DeleteItem"])
def test_a_reader_writes_nothing(dev: Template, action: str) -> None:
    assert not allowed(dev, "reader", Call(f"dynamodb:{action}", "table", "event#stripe#evt-1"))


def test_the_policies_have_no_fixed_names_and_their_arns_are_outputs(dev: Template) -> None:
    policies = dev.all("AWS::IAM::ManagedPolicy")
    assert not [each for each in policies.values() if "ManagedPolicyName" in each]
    outputs = [
        dev.outputs[f"{name}PolicyArn"]["Ref"] for name in ("Reader", "Operator", "Approver")
    ]
    assert sorted(outputs) == sorted(policies)


def test_the_policies_have_room_for_ten_lanes(dev: Template) -> None:
    """An ARN of the stack's resources has at most 150 characters; two lanes have six in reader."""
    for policy in dev.all("AWS::IAM::ManagedPolicy").values():
        arns = [
            named(r) for s in policy["PolicyDocument"]["Statement"] for r in _listed(s["Resource"])
        ]
        of_a_lane = sum("slow" in arn for arn in arns)
        text = len(json.dumps(policy["PolicyDocument"], separators=(",", ":")))
        assert text + 8 * of_a_lane * 150 < POLICY_CHARACTERS


def test_each_command_is_of_a_role_and_in_the_table_of_the_page() -> None:
    by_role = [READING, {**OPERATING, **EITHER}, {**APPROVING, **EITHER}]
    known = {name.partition(" --")[0] for commands in by_role for name in commands} | OTHERS
    assert EFFECTS.keys() - known == set()
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8").partition("## Rights\n")[2]
    for role, commands in zip(ROLES, by_role, strict=True):
        [row] = [line for line in page.splitlines() if line.startswith(f"| {role} |")]
        allows = row.split("|")[2]
        for name in {each.partition(" --")[0] for each in commands} & EFFECTS.keys():
            group, _, verb = name.partition(" ")
            named = f"`{name}`" in allows or f"`{group}`" in allows or f"`{verb}`" in allows
            assert named, (role, name)


def test_the_calls_of_doctor_are_those_of_its_code() -> None:
    """`detect_stack_drift` needs rights to read every resource, which no role has."""
    adapters = ROOT / "functions" / "webhook_inbox" / "adapters" / "aws"
    files = [adapters / "stack_facts.py", adapters / "cloudwatch.py"]
    made = {
        f"{service}:{operation.title().replace('_', '')}"
        for file in files
        for service, operation in READS.findall(file.read_text(encoding="utf-8"))
    }
    listed = {call.action for call in (*READ, *READING["doctor"])}
    own = {action for action in listed if not action.startswith("dynamodb:")}
    assert made - {"cloudformation:DetectStackDrift"} == own - {"cloudformation:GetTemplateSummary"}


@pytest.mark.parametrize("verb", ["approve", "deny", "happened"])
def test_a_decision_changes_no_other_attributes(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The approver's policy names the attributes that the code changes."""
    world, seen = World(), dict[str, set[str]]()
    asked = hold(world)
    effect(world, asked.run)
    update, put = world.table.update, world.table.put

    def updated(key: Key, change: Change, **given: Any) -> Item:
        names = {*change.set, *change.default, *change.add, *change.remove}
        seen.setdefault(key.pk.partition("#")[0], set()).update(names)
        return update(key, change, **given)

    def written(item: Item, **given: Any) -> None:
        seen.setdefault("put", set()).update(item)
        put(item, **given)

    monkeypatch.setattr(world.table, "update", updated)
    monkeypatch.setattr(world.table, "put", written)
    given = (asked, None) if verb == "happened" else (asked,)
    getattr(deciding(world), verb)(*given, by=replace(person("kim"), on_behalf_of="a"), reason="r")

    assert seen["event"] <= {*DECISION, "counts"}
    assert seen["audit"] <= set(CONCLUSION)
    assert seen["put"] <= set(AUDIT_ATTRIBUTES)
