"""Members at the edges of a large object are those that a parser finds."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook_inbox.domain.json_edges import FIRST, TAIL, is_absent, leading, trailing

NAMES = st.sampled_from(["id", "type", "a", "", "ü", 'q"uote', "back\\slash", "data"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False)
    | st.text(max_size=8)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=6)
SPELLINGS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"ensure_ascii": False},
]


@settings(max_examples=300)
@given(document=OBJECTS, name=NAMES, spelling=st.sampled_from(SPELLINGS))
def test_what_is_found_is_what_a_parser_finds(
    document: dict[str, Any], name: str, spelling: dict[str, Any]
) -> None:
    text = json.dumps(document, **spelling).encode()

    for found in (leading(text, name), trailing(text, name)):
        if found is not None:
            assert name in document
            assert repr(found.value) == repr(document[name])
            assert json.loads(text[found.start : found.end]) == found.value


@settings(max_examples=300)
@given(document=VALUES, name=NAMES, cut=st.integers(0, 200), noise=st.binary(max_size=6))
def test_damaged_text_raises_nothing(document: object, name: str, cut: int, noise: bytes) -> None:
    text = json.dumps(document).encode()

    for damaged in (text[:cut], text[:cut] + noise + text[cut:], noise):
        leading(damaged, name)
        trailing(damaged, name)


def test_the_first_and_the_last_members_are_found_without_the_middle() -> None:
    # The middle is no JSON at all: nothing has read it.
    text = b'{"id": "evt_1", "created": 7, "data": {' + b"?" * 100_000 + b'}, "type": "paid"}'

    found = [leading(text, "id"), leading(text, "created"), trailing(text, "type")]
    assert [member and member.value for member in found] == ["evt_1", 7, "paid"]
    assert leading(text, "type") is None


@pytest.mark.parametrize(
    "text",
    [
        b'{"data": {"type": "inner"}}',
        b'{"data": [{"type": "inner"}]}',
        b'[{"type": "of an element"}]',
        b'{"note": "\\"type\\": \\"in a text\\"", "x": 1}',
        b'{"x": "type"}',
        b'{"type": {"name": "object"}}',
        b'{"type": "esc\\u0061ped"}',
        b'{"type": "first", "typ\\u0065": "second"}',
        b'{"a\\"type": "of a longer name"}',
        b'{"type": 01}',
        b'{"type": "cut',
        b'\xff\xfe{\x00"\x00',
        b"",
    ],
)
def test_a_member_in_doubt_is_left_to_the_parser(text: bytes) -> None:
    assert trailing(text, "type") is None


@pytest.mark.parametrize(
    "text",
    [b'{"a": {}, "type": "x"}', b'[{"type": "x"}]', b'{"type": "\\u0061"}', b'"type": "x"', b"{"],
)
def test_a_member_behind_another_object_is_no_leading_one(text: bytes) -> None:
    assert leading(text, "type") is None


def member_names(document: object) -> set[str]:
    """Returns the names of the members of every object in a document."""
    if isinstance(document, dict):
        return set(document).union(*map(member_names, document.values()))
    return set().union(*map(member_names, document)) if isinstance(document, list) else set()


@settings(max_examples=300)
@given(document=VALUES, name=st.sampled_from(["id", "type", "a_b"]), escaped=st.booleans())
def test_an_absent_name_is_nowhere(document: object, name: str, escaped: bool) -> None:
    text = json.dumps(document)
    if escaped:
        text = text.replace(f'"{name[0]}', f'"\\u00{ord(name[0]):02x}')

    if is_absent(text.encode(), name):
        assert name not in member_names(json.loads(text))


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        (b'{"ref": "main", "html": "\\u003cb\\u003e"}', True),
        (b'{"ref": "action"}', False),
        (b'{"\\u0061ction": 1}', False),
        ('{"action": 1}'.encode("utf-16-le"), False),
        (b"", True),
    ],
)
def test_a_name_that_may_be_written_otherwise_is_not_absent(text: bytes, absent: bool) -> None:
    assert is_absent(text, "action") is absent


def test_the_edges_are_bounded() -> None:
    many = b"{" + b"".join(b'"m%d": 1, ' % n for n in range(FIRST)) + b'"id": 2}'
    assert leading(many, "id") is None
    near, far = (b'{"type": "x", "more": "%s"}' % (b"m" * size) for size in (TAIL - 20, TAIL))
    assert trailing(near, "type") is not None
    assert trailing(far, "type") is None
