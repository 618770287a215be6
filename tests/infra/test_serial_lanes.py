"""The lanes of serial handlers: FIFO from the queue to its dead letters, and nothing else is."""

from dataclasses import replace

import pytest

from tests.infra.alarm_states import AlarmState, Recorded, sources, state
from tests.infra.conftest import Synthesize, write_functions
from tests.infra.template import Template, named
from tests.infra.test_alarms import ALARM, alarm
from webhook_inbox.adapters.environment import IngestEnvironment

QUEUE = "AWS::SQS::Queue"
MAPPING = "AWS::Lambda::EventSourceMapping"
DAY = 86400
BILLING = """
from webhook_inbox import Router, serial

billing = Router("billing", source="stripe-eu")


@billing.on("invoice.*", order=serial("data.object.customer", on_dead="block"))
def fulfil(event, ctx):
    return "fulfil"


@billing.on("charge.*", order=serial("data.object.customer"), lane="money")
def charge(event, ctx):
    return "charge"


@billing.on("refund.*", order=serial("data.object.customer"), lane="money")
def refund(event, ctx):
    return "refund"
"""
LANES = ("billingfulfil", "money")


@pytest.fixture(scope="module")
def template(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Template:
    functions = write_functions(tmp_path_factory.mktemp("serial"))
    (functions / "handlers" / "billing.py").write_text(BILLING)
    return synthesize(functions=functions)


def test_a_serial_handler_has_a_lane_of_its_own_and_several_may_share_one(
    template: Template,
) -> None:
    environments = [
        function["Environment"]["Variables"].get("LANE")
        for function in template.all("AWS::Lambda::Function").values()
        if "Environment" in function
    ]
    assert {lane for lane in environments if lane} == {
        "default",
        "slow",
        "billing.fulfil",
        "money",
    }


@pytest.mark.parametrize("lane", LANES)
def test_its_queue_and_its_dead_letters_are_fifo(template: Template, lane: str) -> None:
    for part in ("Work", "DeadLetters"):
        queue = template.one(QUEUE, f"Lane{lane}{part}")
        assert queue["FifoQueue"] is True
        assert queue["SqsManagedSseEnabled"] is True
        # Without these two all ordering keys of a queue share 300 calls a second.
        assert queue["DeduplicationScope"] == "messageGroup"
        assert queue["FifoThroughputLimit"] == "perMessageGroupId"
        assert "ContentBasedDeduplication" not in queue
        assert queue["MessageRetentionPeriod"] == 14 * DAY
    assert template.one(QUEUE, f"Lane{lane}Work")["QueueName"].endswith(".fifo")


def test_the_urls_that_functions_derive_are_the_queues(template: Template) -> None:
    """One lane's name has a character that queues do not take; two lanes are FIFO."""
    variables = template.function("ingest")["Environment"]["Variables"]
    read = IngestEnvironment.read({key: named(value) for key, value in variables.items()})
    urls = replace(read, queue_url="https://sqs/1/any").queue_urls(template.manifest)
    queues = template.all(QUEUE).values()
    names = {queue["QueueName"] for queue in queues if "QueueName" in queue}
    assert set(urls.values()) == {f"https://sqs/1/{name}" for name in names}
    assert len(urls) == 4


@pytest.mark.parametrize("lane", LANES)
def test_its_messages_are_given_up_as_late_as_sqs_can(template: Template, lane: str) -> None:
    policy = template.one(QUEUE, f"Lane{lane}Work")["RedrivePolicy"]
    assert policy["maxReceiveCount"] == 1000
    assert named(policy["deadLetterTargetArn"]).startswith(f"${{InboxLane{lane}DeadLetters")
    processor = template.one("AWS::Lambda::Function", f"Processor{lane}")
    assert processor["Environment"]["Variables"]["MAX_RECEIVE_COUNT"] == "1000"


def test_the_other_lanes_stay_as_they_are(template: Template) -> None:
    for lane in ("default", "slow"):
        work = template.one(QUEUE, f"Lane{lane}Work")
        assert "FifoQueue" not in work
        assert work["RedrivePolicy"]["maxReceiveCount"] == 5
        assert work["MessageRetentionPeriod"] == 7 * DAY


@pytest.mark.parametrize("lane", LANES)
def test_its_dead_letter_queue_takes_from_its_queue_by_its_whole_name(
    template: Template, lane: str
) -> None:
    work = template.one(QUEUE, f"Lane{lane}Work")["QueueName"]
    [source] = template.one(QUEUE, f"Lane{lane}DeadLetters")["RedriveAllowPolicy"][
        "sourceQueueArns"
    ]
    assert named(source).endswith(f":${{AWS::AccountId}}:{work}")


@pytest.mark.parametrize("lane", LANES)
def test_its_mapping_hands_out_one_message_at_a_time_as_all_do(
    template: Template, lane: str
) -> None:
    mapping = template.one(MAPPING, f"Processor{lane}")
    assert mapping["BatchSize"] == 1
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 2
    # Not for FIFO queues, which refuse it.
    assert "MaximumBatchingWindowInSeconds" not in mapping


def rights(template: Template, part: str) -> set[str]:
    found: set[str] = set()
    for name, policy in template.all("AWS::IAM::Policy").items():
        if part in name:
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                found.update([actions] if isinstance(actions, str) else actions)
    return found


def test_only_functions_that_end_waiting_runs_may_delete_rows(
    template: Template,
) -> None:
    for part in ("Processormoney", "Processorbillingfulfil", "Reconciler"):
        assert {"dynamodb:DeleteItem", "dynamodb:Query"} <= rights(template, part)
    for part in ("Processorslow", "Ingest", "Replay"):
        assert "dynamodb:DeleteItem" not in rights(template, part)


def test_without_serial_handlers_no_function_may_delete_a_row(dev: Template) -> None:
    assert "dynamodb:DeleteItem" not in rights(dev, "")


def test_a_serial_run_s_death_is_alarmed_with_its_effect_on_the_key(
    template: Template, dev: Template
) -> None:
    order = "its ordering key may be blocked"
    assert order in alarm(template, "DeadLetters")["AlarmDescription"]
    assert order not in alarm(dev, "DeadLetters")["AlarmDescription"]


def test_half_of_what_a_fifo_queue_can_reach_is_noticed(template: Template) -> None:
    found = alarm(template, "QueueReach")
    fifo = {name for name, each in template.all("AWS::SQS::Queue").items() if each.get("FifoQueue")}
    queues = {
        value[2:-1].partition(".")[0]
        for source in sources(found)
        for value in source.dimensions.values()
    }
    assert queues == {name for name in fifo if "Work" in name}
    assert (found["Threshold"], found["EvaluationPeriods"]) == (60_000, 1)
    assert {each.name for each in sources(found)} == {"ApproximateNumberOfMessagesVisible"}
    assert "webhookctl --stack Inbox runbook queue-reach" in found["AlarmDescription"]
    depth = Recorded()
    depth.add(sources(found)[-1], 930, 59_999)
    assert state(found, depth, 960) is AlarmState.OK
    depth.add(sources(found)[-1], 940, 60_000)
    assert state(found, depth, 960) is AlarmState.ALARM


def test_lanes_without_serial_handlers_have_no_such_alarm(dev: Template) -> None:
    assert not [name for name in dev.all(ALARM) if "QueueReach" in name]
