"""Turns pydantic's errors into one line: table, key, mistake and remedy."""

from typing import Any, Final, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from webhook_inbox.configuration.table import ConfigTable
from webhook_inbox.domain.similar_names import did_you_mean

# The number of a path's parts that name the table, by its first part.
_TABLES: Final = {
    "sources": 2,
    "destinations": 2,
    "approvers": 2,
    "lanes": 2,
    "stages": 2,
    "alarms": 1,
    "domain": 1,
}

# TOML's words in place of Python's.
_KINDS: Final = {
    "dict_type": "must be a table",
    "list_type": "must be a list",
    "model_type": "must be a table",
    "string_type": "must be text in quotes",
}


def line(model: type[ConfigTable], error: ValidationError, table: tuple[str, ...]) -> str:
    """Returns the first mistake, and the number of others."""
    found = error.errors(include_url=False, include_input=False)
    first = found[0]
    path = [str(part) for part in (*table, *first["loc"]) if part != "[key]"]
    depth = _TABLES.get(path[0], 0)
    heading, key = ".".join(path[:depth]), ".".join(path[depth:])
    words = f"{key}: {_mistake(model, first)}" if key else _mistake(model, first)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"[{heading}] {words}{more}" if heading else f"{words}{more}"


def _mistake(model: type[ConfigTable], error: ErrorDetails) -> str:
    owner, field = _locate(model, error["loc"])
    if error["type"] == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), sorted(_fields(owner)))
    remedy = f"; give {field.description}" if field is not None and field.description else ""
    if error["type"] == "missing":
        return f"missing{remedy}"
    message = _KINDS.get(error["type"], error["msg"]).removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    return message if ";" in message else message + remedy


def _unknown(key: str, known: list[str]) -> str:
    guess = did_you_mean(key, known)
    return f"unknown key; {guess or 'remove it (the keys here are ' + ', '.join(known) + ')'}"


def _locate(
    model: type[ConfigTable], path: tuple[int | str, ...]
) -> tuple[type[ConfigTable], FieldInfo | None]:
    """Returns the last model and the last field of a path."""
    field = None
    for part in path:
        field = _fields(model).get(str(part), field)
        model = (field and _inner(field.annotation)) or model
    return model, field


def _fields(model: type[ConfigTable]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _inner(annotation: Any) -> type[ConfigTable] | None:
    if isinstance(annotation, type) and issubclass(annotation, ConfigTable):
        return annotation
    return next((model for part in get_args(annotation) if (model := _inner(part))), None)
