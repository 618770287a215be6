"""The base of every table of inbox.toml, and its common types."""

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)


def name(value: str) -> str:
    """Validates the name of a source, secret, destination or stage."""
    if NAME.fullmatch(value) is None:
        raise ValueError(
            f'"{value}" is not a name; use lower-case letters, digits and dashes, at most 63,'
            " a letter or digit first"
        )
    return value


def header(value: str) -> str:
    """Validates the name of a header."""
    if _HEADER.fullmatch(value) is None:
        raise ValueError(f'"{value}" is not a header\'s name; write it as the provider does')
    return value


def duration_up_to(longest: str) -> Callable[[str], str]:
    """Returns a validator of durations up to `longest`."""

    def check(value: str) -> str:
        try:
            given = duration(value)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        if given > duration(longest):
            raise ValueError(f'"{value}" is too long; give at most "{longest}"')
        return value

    return check


Name = Annotated[str, AfterValidator(name)]
Header = Annotated[str, AfterValidator(header)]
Text = Annotated[str, StringConstraints(min_length=1)]


class ConfigTable(BaseModel):
    """A table that rejects unknown keys and does not convert types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExactlyOneOf(ConfigTable):
    """A table with exactly one of the keys in `places`.

    If it has none, the error asks for the key `asked`.
    """

    places: ClassVar[tuple[str, ...]]
    asked: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _one(cls, data: Any) -> Any:
        known = {field.alias or key for key, field in cls.model_fields.items()}
        if not isinstance(data, dict) or not set(data) <= known:
            return data
        given = [key for key in cls.places if key in data]
        if not given and cls.asked:
            return {**data, cls.asked: None}
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(cls.places)}")
        return data
