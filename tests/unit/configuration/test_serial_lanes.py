"""The declaration of serial handlers, and the FIFO lanes that follow from it."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.configuration.test_compile import root, write
from webhook_inbox import Router, latest, serial
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec, Manifest

__all__ = ["root"]

ORDER = ', order=serial("data.object.customer")'


def write_serial(root: Path, module: str, *, source: str, function: str, more: str = "") -> None:
    write(root, module, source=source, function=function, more=ORDER + more)
    file = root / "handlers" / f"{module}.py"
    file.write_text(
        f"from webhook_inbox.handlers.ordering.declaration import serial\n{file.read_text()}"
    )


def declared(**settings: Any) -> HandlerSpec:
    router = Router("acme")
    router.on("*", name="acme.bill", **settings)(print)
    [spec] = router.handlers
    return spec


# -- one handler


def test_a_serial_handler_has_a_lane_named_as_itself_unless_it_names_one() -> None:
    assert declared(order=serial("customer")).lane == "acme.bill"
    assert declared(order=serial("customer"), lane="money").lane == "money"


def test_any_other_handler_is_in_the_default_lane_unless_it_names_one() -> None:
    assert declared().lane == "default"
    assert declared(order=latest("customer", "at")).lane == "default"
    assert declared(order=latest("customer", "at"), lane="money").lane == "money"


def test_a_serial_handler_in_the_default_lane_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"acme\.bill.*leave `lane` out, or name another"):
        declared(order=serial("customer"), lane="default")


def test_what_a_death_means_is_declared() -> None:
    going, stopping = (
        declared(order=serial("customer", on_dead=on_dead)) for on_dead in ("continue", "block")
    )

    assert (going.serial, going.blocks) == (True, False)
    assert (stopping.serial, stopping.blocks) == (True, True)
    assert not declared(order=serial("customer")).blocks


def test_other_orders_are_not_serial_and_block_nothing() -> None:
    for spec in (declared(), declared(order=latest("customer", "at"))):
        assert (spec.serial, spec.blocks) == (False, False)


@pytest.mark.parametrize("on_dead", ["", "stop", "Block", None])
def test_an_unknown_word_for_deaths_is_refused(on_dead: Any) -> None:
    with pytest.raises(ConfigurationError, match="use continue or block"):
        serial("customer", on_dead=on_dead)


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", None, 7])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="order: key="):
        serial(path)


# -- all of them


def test_a_lane_is_fifo_where_its_handlers_are_serial(root: Path) -> None:
    write_serial(root, "stripe_pay", source="stripe", function="pay")

    manifest = compile_manifest(root, stage="dev")

    assert manifest.serial_lanes == {"stripe.pay"}
    assert manifest.lanes == ("default", "stripe.pay")
    assert Manifest.from_data(manifest.to_data()) == manifest


def test_several_serial_handlers_may_share_a_lane(root: Path) -> None:
    for module, source in (("stripe_pay", "stripe"), ("github_issues", "github")):
        write_serial(root, module, source=source, function="work", more=', lane="money"')

    assert compile_manifest(root, stage="dev").serial_lanes == {"money"}


@pytest.mark.parametrize("serial_one", ["stripe_pay", "github_issues"])
def test_a_lane_of_serial_and_other_handlers_is_refused_naming_both(
    root: Path, serial_one: str
) -> None:
    sources = {"stripe_pay": "stripe", "github_issues": "github"}
    for module, source in sources.items():
        kind = write_serial if module == serial_one else write
        kind(root, module, source=source, function="work", more=', lane="money"')
    other = next(source for module, source in sources.items() if module != serial_one)

    with pytest.raises(ConfigurationError) as refused:
        compile_manifest(root, stage="dev")

    text = str(refused.value)
    assert text.startswith("functions/handlers/")
    assert f"'{sources[serial_one]}.work', which is serial" in text
    assert f"'{other}.work', which is not" in text
    assert "another lane" in text


def test_an_inbox_without_serial_handlers_has_no_fifo_lane(root: Path) -> None:
    assert compile_manifest(root, stage="dev").serial_lanes == frozenset()
