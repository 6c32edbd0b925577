"""Explaining a decoding error never fails, for any types and error messages of a kind's owner."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct, field

from partage_plugins.api.limits import Small
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

Described = Meta(description="for a schema")


class Odd(Struct, frozen=True, kw_only=True):
    """Field types that our own kinds don't have."""

    on: bool = False
    dotted: Small = field(name="example.com/count[0]", default=0)
    inner: Annotated[dict[str, Small], Described] = {}
    either: Annotated[dict[str, Small] | None, Described] = None
    pair: tuple[Small, bool] = (0, False)
    complaint: str | None = None

    def __post_init__(self) -> None:
        if self.complaint is not None:
            raise ValueError(self.complaint)


def refusal(type_: Any, text: str) -> DecodeError:
    with pytest.raises(DecodeError) as refused:
        Reader("odd", type_).read(text)
    assert len(str(refused.value)) < 600
    return refused.value


@pytest.mark.parametrize("wrong", ["k0", "k1", "k7", "k8"])
def test_a_mapping_may_be_the_whole_text(wrong: str) -> None:
    document = {f"k{i}": i for i in range(9)} | {wrong: -1}
    refused = refusal(dict[str, Small], msgspec.json.encode(document).decode())
    assert (refused.path, refused.value, refused.allowed) == (f"$.{wrong}", "-1", "an integer from 0 to 65535")


@pytest.mark.parametrize(
    ("text", "path", "value", "allowed"),
    [
        ('{"on":1}', "$.on", "1", "true or false"),
        ('{"inner":{"a":1,"b":-1}}', "$.inner.b", "-1", "an integer from 0 to 65535"),
        ('{"either":{"a":1,"b":-1}}', "$.either.b", "-1", "an integer from 0 to 65535"),
        ('{"either":3}', "$.either", "3", "object | null, got int"),
        ('{"pair":[1,2]}', "$.pair[1]", "2", "bool, got int"),
        ('{"pair":[1]}', "$.pair", "[1]", "array of length 2"),
    ],
)
def test_every_type_is_looked_through(text: str, path: str, value: str, allowed: str) -> None:
    refused = refusal(Odd, text)
    assert (refused.path, refused.value, refused.allowed) == (path, value, allowed)


@pytest.mark.parametrize(
    "complaint",
    [
        "",
        "plain",
        "`$`",
        " - at `$`",
        " - at `$.nothing.there`",
        " - at `$[7]`",
        f" - at `$[{'9' * 5000}]`",
        " - at `$[...]`",
        " - at `$.on[...][...]`",
        " - at `key` in `$`",
        " - at `key` in `$.nothing[0]`",
        " - at `key` in `$.complaint`",
        "Object missing required field ",
        "two\nlines",
        " - at `$" * 20_000,
        "\ud83e\udd80" * 5000,
    ],
)
def test_a_complaint_that_looks_like_a_place_does_no_harm(complaint: str) -> None:
    text = msgspec.json.encode({"complaint": complaint.encode(errors="ignore").decode()}).decode()
    refused = refusal(Odd, text)
    assert refused.path.startswith("$")
    assert str(refused).isprintable()


def test_a_field_with_an_odd_name_is_refused_though_its_place_is_not_found() -> None:
    assert refusal(Odd, '{"example.com/count[0]":-1}').what == "odd"


def test_what_a_type_cannot_say_in_words_the_complaint_says() -> None:
    assert refusal(Annotated[int, Meta(ge=3)], "2").allowed == "int >= 3"
    assert refusal(Annotated[float, Meta(lt=1)], "1").allowed == "float < 1.0"
    assert refusal(Annotated[str, Meta(pattern="^a$")], '"b"').allowed == "text matching ^a$"
