"""Kubernetes quantities: exactly upstream's grammar, without rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.codecs import format_bytes, parse_quantity, parse_whole_quantity
from partage_plugins.codecs.quantity import parse_bytes
from partage_plugins.errors import DecodeError

LARGEST = 2**63 - 1
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
UPSTREAM = {
    "0": "0",
    "0n": "0",
    "0Ki": "0",
    "00": "0",
    "000012": "12",
    "1Ki": "1024",
    "7Mi": "7340032",
    "6Gi": "6442450944",
    "5Ti": "5497558138880",
    "4Pi": "4503599627370496",
    "3Ei": "3458764513820540928",
    "5n": "0.000000005",
    "4u": "0.000004",
    "3m": "0.003",
    "9": "9",
    "8k": "8000",
    "7M": "7000000",
    "6G": "6000000000",
    "300T": "300000000000000",
    "2P": "2000000000000000",
    "1E": "1000000000000000000",
    "1E-3": "0.001",
    "1e3": "1000",
    "1E6": "1000000",
    "1e18": "1000000000000000000",
    "1.3E+6": "1300000",
    "0.5e0": "0.5",
    "0.5e-2": "0.005",
    ".001e12": "1000000000",
    "1000e-12": "0.000000001",
    "100.035k": "100035",
    "0.0005k": "0.5",
    "0.05000": "0.05",
    "6.987654321G": "6987654321",
    "1.01E": "1010000000000000000",
    "100.035Ki": "102435.84",
    "0.5Mi": "524288",
    "0.05Gi": "53687091.2",
    ".001": "0.001",
    ".0001k": "0.1",
    "1.": "1",
    "1.G": "1000000000",
    "9223372036854775807": "9223372036854775807",
}
ROUNDED_UPSTREAM = {"3.001n": "3.001e-9", "0.9n": "9e-10", "1.1E-9": "1.1e-9", "0.000000000001Ki": "1.024e-9"}
REFUSED_UPSTREAM = [
    *["", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", " 1", "1 "],
    *[
        "1e",
        "1e+",
        "1e3.5",
        "1e3k",
        "1Kii",
        "1KI",
        "1ki",
        "1mi",
        "1K",
        "1g",
        "1KiB",
        "1B",
        "1ee3",
        "1E3E",
        "--1",
        "+-1",
    ],
    *["NaN", "nan", "inf", "Infinity", "-inf", "1_000", "1,000", "0x10", "1/2", "1\n", "\t1", "1\0", "\ud800"],
    *["\u0661", "\uff11", "1\u00a0", "\u22121", "1\u212ai", "1\u00b2"],
]
REFUSED_HERE_ALONE = [
    *["-", "+", ".", "-.", "Ki", "m", "+Gi", ".Ki"],
    *["9223372036854775808", "9.3E", "8Ei", "9Ei", "9223372036854775807Ki", "12E", "1e19", "-9223372036854775808"],
    *["1e0003", "0e9999", "0" * 41, "0." + "0" * 41],
]


@pytest.mark.parametrize(("text", "number"), (UPSTREAM | ROUNDED_UPSTREAM).items())
@pytest.mark.parametrize(("sign", "factor"), [("", 1), ("+", 1), ("-", -1)])
def test_what_upstream_documents_is_read_exactly(text: str, number: str, sign: str, factor: int) -> None:
    assert parse_quantity(sign + text) == factor * Fraction(number)


@pytest.mark.parametrize("text", [*REFUSED_UPSTREAM, *REFUSED_HERE_ALONE, "1" * 262144, "1e" + "9" * 262144])
def test_anything_else_is_refused_with_path_value_and_what_is_allowed(text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        parse_quantity(text, path="here")
    assert refused.value.path == "here"
    assert refused.value.value.startswith(repr(text)[:20])
    assert "a quantity such as 500m, 2, 8Gi or 1e3, within 63 bits" in str(refused.value)
    assert len(str(refused.value).encode()) < 600


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-0", 0), ("1000m", 1), ("0.5Ki", 512), ("7.99e2", 799)])
def test_a_whole_quantity_may_be_written_in_any_way(text: str, number: int) -> None:
    assert parse_whole_quantity(text) == number


@pytest.mark.parametrize("text", ["0.5", "1n", "1e-999", "-1", "1001", "1.0000000000000000000000001"])
def test_a_part_of_one_less_than_none_and_too_many_are_refused(text: str) -> None:
    with pytest.raises(DecodeError, match=r"allowed: a whole quantity from 0 to 1000$"):
        parse_whole_quantity(text, largest=1000)


def test_an_amount_of_memory_is_refused_in_words_about_memory() -> None:
    assert parse_bytes("512Mi", largest=1 << 30) == 512 << 20
    with pytest.raises(DecodeError, match=r"allowed: an amount of memory from 0 to 1Gi, such as 8Gi or 512Mi$"):
        parse_bytes("2Gi", largest=1 << 30)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1, "1"), (1023, "1023"), (1024, "1Ki"), (1536, "1536"), (1 << 30, "1Gi"), (3 << 29, "1536Mi")],
)
def test_bytes_are_written_as_short_as_they_can_be_exactly(number: int, text: str) -> None:
    assert format_bytes(number) == text


@given(st.integers(0, LARGEST) | st.integers(0, 8191).map(lambda number: number << 50))
def test_written_bytes_read_as_the_same(number: int) -> None:
    assert parse_whole_quantity(format_bytes(number)) == number


@given(
    st.integers(0, 10**39),
    st.integers(0, 10**39),
    st.sampled_from(["", "+", "-"]),
    st.sampled_from([*BINARY, *DECIMAL]),
)
def test_every_number_is_exact_or_refused(whole: int, part: int, sign: str, suffix: str) -> None:
    scale = Fraction(1024) ** BINARY[suffix] if suffix in BINARY else Fraction(10) ** DECIMAL[suffix]
    number = Fraction(f"{sign}{whole}.{part}") * scale
    text = f"{sign}{whole}.{part}{suffix}"
    if abs(number) <= LARGEST:
        assert parse_quantity(text) == number
    else:
        with pytest.raises(DecodeError):
            parse_quantity(text)


@given(st.integers(-LARGEST, LARGEST), st.integers(0, 30))
def test_an_exact_number_survives_being_written_as_a_decimal(unscaled: int, places: int) -> None:
    number = Fraction(unscaled, 10**places)
    assert parse_quantity(f"{Decimal(unscaled).scaleb(-places):f}") == number
    assert parse_quantity(f"{unscaled}e-{places}") == number


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12) | st.text(max_size=8))
def test_any_text_is_a_number_or_one_error(text: str) -> None:
    try:
        number = parse_quantity(text)
    except DecodeError:
        return
    assert abs(number) <= LARGEST
    assert text.isascii()
    assert any(letter.isdigit() for letter in text)
