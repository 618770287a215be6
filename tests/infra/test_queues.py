"""The lanes: how long messages are kept, when SQS gives them up, who may come near."""

import pytest
from webhook_inbox_cdk.processor import Placement

from tests.infra.conftest import Synthesize
from tests.infra.template import KEPT_ONCE_DEPLOYED, Template, named, survival
from webhook_inbox.client.health.preflight.concurrency import MAINTENANCE
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec, LaneSpec

QUEUE = "AWS::SQS::Queue"
MAPPING = "AWS::Lambda::EventSourceMapping"
DAY = 86400


def spec(name: str, *, attempts: int) -> HandlerSpec:
    return HandlerSpec(
        name=name, module="m", function="f", source="s", types=("*",), max_attempts=attempts
    )


@pytest.mark.parametrize("lane", ["default", "slow"])
def test_each_lane_of_the_manifest_has_queues_function_and_mapping(
    dev: Template, lane: str
) -> None:
    work = dev.one(QUEUE, f"Lane{lane}Work")
    dead = dev.one(QUEUE, f"Lane{lane}DeadLetters")
    assert work["MessageRetentionPeriod"] == 7 * DAY
    assert dead["MessageRetentionPeriod"] == 14 * DAY
    mapping = dev.one(MAPPING, f"Processor{lane}")
    assert named(mapping["EventSourceArn"]).startswith(f"${{InboxLane{lane}Work")
    assert named(mapping["FunctionName"]).startswith(f"${{InboxProcessor{lane}")
    environment = dev.one("AWS::Lambda::Function", f"Processor{lane}")["Environment"]["Variables"]
    assert environment["LANE"] == lane


def test_there_is_no_lane_beside_the_manifest_s(dev: Template) -> None:
    assert len(dev.all(QUEUE)) == 4
    assert len(dev.all(MAPPING)) == 2


def test_leases_fit_between_the_function_s_timeout_and_the_queue_s(dev: Template) -> None:
    timeout = dev.function("processor")["Timeout"]
    assert dev.one(QUEUE, "defaultWork")["VisibilityTimeout"] == 6 * timeout == 360


def test_messages_are_given_up_after_five_receives_whatever_handlers_declare(
    dev: Template,
) -> None:
    for lane in ("default", "slow"):
        policy = dev.one(QUEUE, f"{lane}Work")["RedrivePolicy"]
        assert policy["maxReceiveCount"] == 5
        assert named(policy["deadLetterTargetArn"]).startswith(f"${{InboxLane{lane}DeadLetters")


def test_only_its_own_queue_may_use_a_dead_letter_queue(dev: Template) -> None:
    for lane in ("default", "slow"):
        policy = dev.one(QUEUE, f"{lane}DeadLetters")["RedriveAllowPolicy"]
        assert policy["redrivePermission"] == "byQueue"
        [source] = policy["sourceQueueArns"]
        work = dev.one(QUEUE, f"{lane}Work")["QueueName"]
        assert named(source).endswith(f":${{AWS::AccountId}}:{work}")


def test_queues_are_standard_and_encrypted(dev: Template) -> None:
    for queue in dev.all(QUEUE).values():
        assert queue["SqsManagedSseEnabled"] is True
        assert "FifoQueue" not in queue


def test_queues_are_reached_by_tls_only(dev: Template) -> None:
    guarded = set()
    for policy in dev.all("AWS::SQS::QueuePolicy").values():
        [statement] = policy["PolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        guarded.update(queue["Ref"] for queue in policy["Queues"])
    assert guarded == set(dev.all(QUEUE))


def test_dead_letters_survive_their_stack(dev: Template) -> None:
    for lane in ("default", "slow"):
        assert survival(dev.resource(QUEUE, f"{lane}DeadLetters")) == KEPT_ONCE_DEPLOYED


def test_messages_come_one_at_a_time_unless_their_lane_makes_several_runs(dev: Template) -> None:
    for lane, size in (("default", 1), ("slow", 5)):
        assert dev.one(MAPPING, f"Processor{lane}")["BatchSize"] == size


def test_messages_fail_one_at_a_time(dev: Template) -> None:
    for mapping in dev.all(MAPPING).values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_a_backlog_leaves_a_new_account_s_invocations_to_ingest(dev: Template) -> None:
    new_account, stages, lanes, workers = 10, 2, 1, LaneSpec().workers
    for mapping in dev.all(MAPPING).values():
        assert mapping["ScalingConfig"]["MaximumConcurrency"] == workers
    used = stages * (lanes * workers + MAINTENANCE)
    assert new_account - used >= stages  # one each


@pytest.mark.parametrize(("lane", "workers"), [("default", 2), ("slow", 4)])
def test_each_lane_has_its_own_workers(prod: Template, lane: str, workers: int) -> None:
    mapping = prod.one(MAPPING, f"Processor{lane}")
    assert mapping["ScalingConfig"]["MaximumConcurrency"] == workers


def test_reserved_concurrency_may_equal_what_sqs_hands_out(synthesize: Synthesize) -> None:
    template = synthesize(Placement(reserved_concurrency=2))
    assert template.function("processor")["ReservedConcurrentExecutions"] == 2
    assert template.one(MAPPING, "default")["ScalingConfig"]["MaximumConcurrency"] == 2


@pytest.mark.parametrize(
    ("stage", "reserved", "line"),
    [
        ("dev", 1, "is below the 2 workers of the lane 'default': .* reserve at least 2 or lower"),
        ("prod", 3, r"is below the 4 workers of the lane 'slow': .* `workers` of \[lanes\.slow\]"),
    ],
)
def test_reserved_concurrency_below_what_sqs_hands_out_is_refused(
    synthesize: Synthesize, stage: str, reserved: int, line: str
) -> None:
    with pytest.raises(ConfigurationError, match=line):
        synthesize(Placement(reserved_concurrency=reserved), stage=stage)
