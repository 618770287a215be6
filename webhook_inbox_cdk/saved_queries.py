"""Saved queries of CloudWatch Logs Insights over the log groups of the functions."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_logs as logs
from constructs import Construct

# Replaced by the user in the console.
EVENT_ID: Final = "EVENT_ID"
QUERIES: Final[Mapping[str, str]] = {
    "One event": (
        "fields @timestamp, source, handler, outcome, reason, actor, selection, error_class,"
        " error_line, duration_ms, trace_id\n"
        f'| filter event_id = "{EVENT_ID}"\n'
        "| sort @timestamp asc"
    ),
    "Errors": (
        "fields @timestamp, @log, message, source, event_id, reason, detail, error_class,"
        " errorMessage, record.status\n"
        '| filter level = "ERROR" or record.status in ["error", "timeout"]\n'
        "| sort @timestamp desc\n"
        "| limit 100"
    ),
    "Errors by handler and line": (
        "filter ispresent(error_class)\n"
        "| stats count(*) as errors, latest(@timestamp) as latest_error"
        " by handler, error_class, error_line\n"
        "| sort errors desc"
    ),
    "Rejected by source and reason": (
        'filter outcome = "rejected"\n'
        "| stats count(*) as deliveries by source, reason\n"
        "| sort deliveries desc"
    ),
    "Slowest attempts": (
        "fields @timestamp, source, event_id, handler, outcome, duration_ms, trace_id\n"
        "| filter ispresent(handler) and ispresent(duration_ms)\n"
        "| sort duration_ms desc\n"
        "| limit 50"
    ),
    "Retries": (
        'filter outcome = "failed"\n'
        "| stats count(*) as retries, count_distinct(event_id) as events"
        " by handler, source, error_class\n"
        "| sort retries desc"
    ),
}


def saved_queries(scope: Construct, log_groups: Sequence[str]) -> None:
    """Saves the queries in the console's folder of the stack's name; they cost nothing until run.

    Args:
        scope: the construct that gets them.
        log_groups: the names of the log groups that a query reads.
    """
    for name, query in QUERIES.items():
        logs.CfnQueryDefinition(
            scope,
            f"Query{name.title().replace(' ', '')}",
            name=f"{Stack.of(scope).stack_name}/{name}",
            query_string=query,
            log_group_names=list(log_groups),
        )
