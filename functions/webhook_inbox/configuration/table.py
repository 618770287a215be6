"""What every table of inbox.toml has in common."""

import re
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic import model_validator as validator

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)


def name(value: str) -> str:
    """Accepts the name of a source, secret, destination or stage."""
    if NAME.fullmatch(value) is None:
        raise ValueError(
            f'"{value}" is not a name; use lower-case letters, digits and dashes, at most 63,'
            " a letter or digit first"
        )
    return value


def header(value: str) -> str:
    """Accepts the name of a header."""
    if _HEADER.fullmatch(value) is None:
        raise ValueError(f'"{value}" is not a header\'s name; write it as the provider does')
    return value


Name = Annotated[str, AfterValidator(name)]
Header = Annotated[str, AfterValidator(header)]
Text = Annotated[str, StringConstraints(min_length=1)]


class ConfigTable(BaseModel):
    """A table in which every key is known and every value has its type exactly."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExactlyOneOf(ConfigTable):
    """A table with exactly one of these keys, beside others that it may have.

    Where none is given, `asked` is the one to ask for.
    """

    places: ClassVar[tuple[str, ...]]
    asked: ClassVar[str] = ""

    @validator(mode="before")
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
