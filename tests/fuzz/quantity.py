"""Any text is either one exact number within 63 bits or raises DecodeError, and encoded bytes read as the same.

Accepted texts are checked against a second reading, written by hand with other means.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from fuzz import _codecs
from partage_plugins.codecs import format_bytes, parse_quantity, parse_whole_quantity
from partage_plugins.errors import DecodeError

SEEDS = (b"8Gi", b"500m", b"1e3", b"+.5Ki", b"-1.E", b"9223372036854775807", b"1E-9", b"0.000000000000001Ei")
DICTIONARY = (b"Ki", b"Mi", b"Ei", b"E", b"e-", b"E+", b"999", b"n", b"u", b".", b"9223372036854775808")
_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_EXACT = Context(prec=2000, Emin=-9999, Emax=9999)


def target(data: bytes) -> str:
    """Reads a number, and bytes if it is an amount of them."""
    text = data.decode(errors="surrogateescape")
    try:
        number = parse_quantity(text)
    except DecodeError as error:
        return _codecs.refused(error)
    if number != _by_hand(text) or abs(number) >= 2**63:
        raise AssertionError(f"{text!r} was read as {number}")
    try:
        whole = parse_whole_quantity(text)
    except DecodeError as error:
        return "part, or negative: " + _codecs.refused(error)
    if whole != number or parse_whole_quantity(format_bytes(whole)) != whole:
        raise AssertionError(f"{text!r} was read as {whole} and written as {format_bytes(whole)!r}")
    return "whole"


def _by_hand(text: str) -> Fraction:
    if text.endswith("i"):
        kibis: int = 1024 ** ("KMGTPE".index(text[-2]) + 1)
        return _decimal(text[:-2]) * kibis
    if text[-1] in "0123456789.":
        return _decimal(text)
    billionths: int = 1000 ** _SUFFIXES.index(text[-1])
    return _decimal(text[:-1]) * Fraction(billionths, 1000**3)


def _decimal(text: str) -> Fraction:
    return Fraction(Decimal(text, _EXACT))
