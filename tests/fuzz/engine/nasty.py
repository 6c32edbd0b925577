"""Values and tokens that parsers tend to get wrong."""

from typing import Final

_WHOLE: Final = (0, 1, 255, 256, 1001, 2**16, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64)
_NUMBERS: Final = "-0 -1 -9223372036854775809 1e308 1e309 -1e-400 0.1 1.0 01 NaN Infinity -Infinity"
NUMBERS: Final = (*(b"%d" % number for number in _WHOLE), b"1" + b"0" * 400, *_NUMBERS.encode().split())

BYTES: Final = bytes({0, 1, 9, 10, 13, 32, 34, 44, 48, 57, 58, 91, 92, 93, 123, 125, 127, 128, 192, 239, 254, 255})

_WORDS: Final = b'null true false {} [] "" {"":null} , : " \\ "\\u0000" "\\ud800" "\xff" .. / %s'.split()
TOKENS: Final = (*NUMBERS, *_WORDS, b"\xef\xbb\xbf", b"\xe2\x80\xae", b" ", b"\n")

JSON_VALUES: Final[tuple[object, ...]] = (
    *(None, True, False, 0, -1, 1, 1001, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(0.1, -0.0, 1e308, float("nan"), float("inf")),
    *("", "\0", "\ud800", "\u202e", "..", "1e9", "NaN", "9223372036854775808", "a" * 300, "é" * 5000),
    *([], {}, [None], {"": {}}),
)
