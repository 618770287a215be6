"""Personal fields are masked in bodies, and their values are removed from texts."""

import json
import tracemalloc
from time import process_time

import pytest

from webhook_inbox.domain.personal import PersonalTexts, masked

BODY = {
    "id": "evt-1",
    "customer": {"email": "ada@example.com", "name": "Ada O'Brien", "phone": 4155551234},
    "items": [{"email": "bob@example.com", "n": 1}, {"email": "eve@example.com"}],
}
RAW = json.dumps(BODY).encode()


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("customer.email", ["ada@example.com"]),
        ("customer.phone", ["4155551234"]),
        ("customer", ["ada@example.com", "Ada O'Brien", "4155551234"]),
        ("items.email", ["bob@example.com", "eve@example.com"]),
        ("items.1.email", ["eve@example.com"]),
        ("items.9.email", []),
        ("nothing.here", []),
        ("id.more", []),
    ],
)
def test_only_the_values_at_a_path_are_masked(path: str, gone: list[str]) -> None:
    shown = masked(RAW, [path]).decode()
    every = ["ada@example.com", "Ada O'Brien", "4155551234", "bob@example.com", "eve@example.com"]
    assert [text for text in every if text not in shown] == gone
    assert ("[personal]" in shown) is bool(gone)
    assert json.loads(shown)["id"] == "evt-1"


def test_a_body_without_personal_fields_stays_as_it_is() -> None:
    spaced = b'{ "id" : 1 }'
    assert masked(spaced, []) == spaced
    assert masked(spaced, ["customer.email"]) == spaced


@pytest.mark.parametrize(
    "body",
    [
        b'{"customer": {"email": "ada@example.com"}, "customer": {}}',
        b'{"customer": {"email": "ada@example.com", "email": null}}',
        b'[{"x": {"customer": {"email": "ada@example.com"}, "customer": 1}}]',
    ],
)
def test_the_first_value_of_a_repeated_name_is_not_shown(body: bytes) -> None:
    assert b"ada@example.com" not in masked(body, ["customer.email"])


@pytest.mark.parametrize("body", [b"email=ada%40example.com", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_is_masked_as_a_whole(body: bytes) -> None:
    assert masked(body, ["email"]) == b"[personal]"


@pytest.mark.parametrize(
    "text",
    [
        "no customer ada@example.com",
        "GET /customers/ada%40example.com answered 404",
        """KeyError: {'name': "Ada O'Brien"}""",
        "called 4155551234",
        'answered {"name": "Ada O\'Brien"}',
    ],
)
def test_a_text_that_quotes_a_value_loses_it(text: str) -> None:
    personal = PersonalTexts(["customer"])
    personal.body = RAW
    hidden = personal.hide(text)
    assert "[personal]" in hidden
    assert not any(each in hidden for each in ("ada", "Ada", "Brien", "4155551234"))


def test_short_values_stay_in_texts() -> None:
    personal = PersonalTexts(["initials", "vip"])
    personal.body = b'{"initials": "abc", "vip": true}'
    assert personal.hide("abc is True") == "abc is True"


def test_without_a_body_or_a_path_a_text_stays() -> None:
    assert PersonalTexts(["customer"]).hide("Ada O'Brien") == "Ada O'Brien"
    personal = PersonalTexts()
    personal.body = RAW
    assert personal.hide("Ada O'Brien") == "Ada O'Brien"


@pytest.mark.parametrize("mark", ["…", "...", "", "\nTraceback"])
@pytest.mark.parametrize("kept", range(4, len("ada@example.com")))
def test_the_beginning_of_a_value_that_was_cut_is_removed(kept: int, mark: str) -> None:
    personal = PersonalTexts(["customer"], RAW)
    text = f"no customer {'ada@example.com'[:kept]}{mark}"
    hidden = personal.hide(text)
    assert hidden.startswith("no customer [personal]")
    assert hidden.endswith(mark)
    assert "ada" not in hidden


@pytest.mark.parametrize("kept", range(4, len("ada@example.com")))
def test_the_end_of_a_value_that_was_cut_is_removed(kept: int) -> None:
    personal = PersonalTexts(["customer"], RAW)
    ending = "ada@example.com"[-kept:]
    assert personal.hide(f"no '...{ending}' or …{ending}") == "no '...[personal]' or …[personal]"


def test_what_only_begins_like_a_value_stays() -> None:
    personal = PersonalTexts(["customer"], RAW)
    text = "ada@example.org is known…\nso is ada@exa in the middle\nand … at example"
    assert personal.hide(text) == text


def test_names_that_are_data_are_removed_and_names_of_fields_stay() -> None:
    personal = PersonalTexts(["people"], b'{"people": {"ada@example.com": {"street": "Elm Road"}}}')
    text = "people.ada@example.com.street: Elm Road"
    assert personal.hide(text) == "people.[personal].street: [personal]"


@pytest.mark.parametrize(
    "piece", ["a", "aaaa…", "aaac…", "aaaaa...", "\n", "aaab\n", "a" * 999 + "…"]
)
def test_a_hostile_text_is_searched_in_bounded_time(piece: str) -> None:
    values = ["a" * 3000 + "b", "b" + "a" * 3000, "aaab" * 700]
    personal = PersonalTexts(["x"], json.dumps({"x": values}).encode())
    begun = process_time()
    personal.hide(f"{piece * (100_000 // len(piece))}…")
    assert process_time() - begun < 3


@pytest.mark.parametrize("size", [5000, 70_000])
@pytest.mark.parametrize("before", [15_000, 15_996, 20_000])
def test_the_middle_of_a_long_text_may_be_left_out(size: int, before: int) -> None:
    value = "".join(f"{number:06};" for number in range(size // 7))
    personal = PersonalTexts(["x"], json.dumps({"x": value}).encode())
    hidden = personal.hide("-" * before + value[: size // 2] + "…" + "-" * 40_000)
    assert len(hidden) <= 32_020
    assert ";" not in hidden


def test_a_value_of_white_space_changes_no_text() -> None:
    personal = PersonalTexts(["x"], b'{"x": "      "}')
    assert personal.hide("no      customer") == "no      customer"


@pytest.mark.parametrize("value", ["a   ", " a  b ", "personal", "sona"])
def test_a_short_value_with_blanks_or_a_part_of_the_mark_changes_no_text(value: str) -> None:
    personal = PersonalTexts(["x"], json.dumps({"x": value}).encode())
    text = "KeyError: a payment failed [personal]"
    assert personal.hide(text) == text


def test_a_large_value_is_removed_in_little_time() -> None:
    html = '<p class="a">é &amp; b</p>\n' * 80_000
    personal = PersonalTexts(["html"], json.dumps({"html": html}).encode())
    begun = process_time()
    assert personal.hide("ValueError: unknown order") == "ValueError: unknown order"
    assert "amp" not in personal.hide(f"ValueError: {html} is unknown")
    assert process_time() - begun < 5


def test_many_values_and_many_lines_are_compared_in_bounded_time() -> None:
    values = [f"value number {number} é" for number in range(500)]
    personal = PersonalTexts(["x"], json.dumps({"x": values}).encode())
    begun = process_time()
    assert personal.hide("\n".join(f"value n {number}" for number in range(900))) == "[personal]"
    assert process_time() - begun < 5


@pytest.mark.parametrize(("number", "length"), [(130_000, 20), (1200, 4000)])
def test_a_body_of_personal_values_takes_little_memory(number: int, length: int) -> None:
    values = [f"{place:06} é {'v' * (length - 9)}" for place in range(number)]
    body = json.dumps({"x": values}).encode()
    personal = PersonalTexts(["x"], body)
    tracemalloc.start()
    json.loads(body)
    _, parsing = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    hidden = personal.hide(f"no customer {values[5]} in\n{values[6][:8]}…")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert hidden == "[personal]"
    assert peak < 2 * parsing


def test_many_values_that_end_like_a_text_leave_it() -> None:
    values = [f"{number}@example.com" for number in range(7000)]
    personal = PersonalTexts(["x"], json.dumps({"x": values}).encode())
    traceback = "".join(f"  line {number}, in example.com\n" for number in range(200))
    assert personal.hide(traceback + values[7]) == f"{traceback}[personal]"
