"""The estimate of costs reads a template, and knows that of a new project."""

import json
from pathlib import Path

import pytest
from webhook_inbox_cdk.api import ACCESS_LOG

from tests.infra.conftest import Synthesize
from tests.infra.template import Template
from webhookctl.cost import estimate
from webhookctl.cost.shape import Shape

SHOP = """
[sources.shop]
provider = "hmac"
signature = { header = "X-Shop-Signature", signs = "{body}" }
event_id = { json = "id" }
event_type = { json = "type" }
"""
HANDLERS = """
from webhook_inbox import Router

shop = Router("shop")
"""
HANDLER = """

@shop.on("order.paid")
def handler_{number}(event, ctx):
    return None
"""


def functions(top: Path, handlers: int) -> Path:
    """Writes a project with one source and so many handlers."""
    own = top / "functions"
    (own / "handlers").mkdir(parents=True)
    (own / "inbox.toml").write_text(SHOP)
    (own / "handlers" / "__init__.py").write_text('MODULES = ("shop",)\n')
    code = HANDLERS + "".join(HANDLER.format(number=number) for number in range(handlers))
    (own / "handlers" / "shop.py").write_text(code)
    return own


@pytest.mark.parametrize("handlers", [1, 2, 12])
def test_a_new_project_has_the_shape_that_the_command_assumes(
    handlers: int, synthesize: Synthesize, tmp_path: Path
) -> None:
    template = synthesize(functions=functions(tmp_path, handlers), dashboard=False)
    assert Shape.of(template.body) == Shape.new(handlers)


@pytest.mark.parametrize(("second", "days"), [("", 0), ('retention = "7d"', 7)])
def test_payloads_are_erased_where_every_source_has_a_retention(
    second: str, days: int, synthesize: Synthesize, tmp_path: Path
) -> None:
    own = functions(tmp_path, 1)
    first = SHOP + 'retention = "2d"\n'
    other = SHOP.replace("sources.shop", "sources.other") + second
    (own / "inbox.toml").write_text(first + other)
    assert Shape.of(synthesize(functions=own).body).retention == days * 86_400


def metrics_of_alarms(template: Template) -> int:
    alarms = template.all("AWS::CloudWatch::Alarm").values()
    return sum(
        sum("MetricStat" in query for query in alarm["Metrics"]) if "Metrics" in alarm else 1
        for alarm in alarms
    )


def test_the_shape_of_a_stack_is_read_from_its_template(dev: Template) -> None:
    shape = Shape.of(dev.body)
    assert (shape.sources, shape.handlers, shape.lanes) == (2, 3, 2)
    assert shape.alarm_metrics == metrics_of_alarms(dev)
    # The sources' document, the handlers', and the key of completions.
    assert shape.secrets == 3


def test_the_line_of_the_access_log_has_the_size_that_is_billed() -> None:
    values = {
        "requestId": "JKJaXmPLvHcESHA=",
        "method": "POST",
        "route": "ANY /webhooks/shop",
        "status": "202",
        "sourceIp": "203.0.113.9",
        "integrationLatency": "24",
        "integrationError": "-",
    }
    assert set(values) == set(ACCESS_LOG)
    assert len(json.dumps(values)) == pytest.approx(estimate.ACCESS_LOG, rel=0.03)
