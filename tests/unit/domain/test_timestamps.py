from datetime import timedelta

import pytest

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("30s", 30), ("5m", 300), ("1h", 3600), ("999999s", 999_999)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "5 m", "5M", "0s", "05m", "-5m", "1.5h", "5d", "5m30s", "\u0665m", "1000000s"],
)
def test_anything_else_is_refused_with_the_spelling_to_use(text: str) -> None:
    with pytest.raises(ConfigurationError, match='write it like "30s", "5m" or "1h"'):
        duration(text)
