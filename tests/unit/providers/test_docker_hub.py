import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import delivery, name_of
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Identity
from webhook_inbox.providers.docker_hub import PROVIDER


def pushed(at: str) -> Identity | Reason:
    body = f'{{"repository":{{"repo_name":"a/b"}},"push_data":{{"tag":"1.0","pushed_at":{at}}}}}'
    return name_of(PROVIDER, delivery({}, body.encode()))


@pytest.mark.parametrize("at", ["1417566161", "1.417566161e+09"])
def test_a_push_is_named_by_repository_tag_and_time_however_it_is_written(at: str) -> None:
    identity = pushed(at)

    assert isinstance(identity, Identity)
    assert (identity.event_id, identity.type) == ("a/b|1.0|1417566161", "push")
    assert identity.occurred_at is not None


@pytest.mark.parametrize("at", ["null", "1.5", "Infinity", "NaN", "1e400", "true", "[]"])
def test_a_push_of_no_time_has_no_name(at: str) -> None:
    assert pushed(at) is Reason.MISSING_EVENT_ID


def test_the_token_in_the_query_is_kept_nowhere_in_clear() -> None:
    assert signed("docker-hub").delivery.query.startswith("token=")
    assert PROVIDER.token_fields == {"token"}
