"""Functions in the tables that cuGetExportTable returns, as JSON: a result and places for each table."""

import ctypes
import json
import sys

from isolation.real_drivers.programs.pointers import places

TABLES = {
    "runtime callbacks": "a094798c2e742e7493f20800200c0a66",
    "runtime": "6bd5fb6c5bf4e74a8987d93912fd9df9",
    "storage of threads": "42d85a8123f6cb478298f6e78a3aecdc",
    "storage of contexts": "c693336e1121df11a8c368f355d89593",
    "contexts": "0ca50b8c1004929a89a7d0df10e77286",
    "devices": "b10541e1f7c7c74a9f64f223be99f1e2",
    "integrity": "d4082055bde6704b8d34ba123c66e1f2",
    "checks": "263e88607cd2614392f6bbd5006dfa7e",
}
LARGEST = 4096
UNSIZED = 32
"""The number of words read from a table that does not begin with its size."""

driver = ctypes.CDLL("libcuda.so.1")
told = {}
for name, uuid in TABLES.items():
    table = ctypes.c_void_p()
    result = driver.cuGetExportTable(ctypes.byref(table), bytes.fromhex(uuid))
    words: list[int] = []
    if table.value:
        size = ctypes.c_uint64.from_address(table.value).value
        words = list((ctypes.c_uint64 * (size // 8 if size <= LARGEST else UNSIZED)).from_address(table.value))
    told[name] = [result, [place for place in places(words) if place]]
json.dump(told, sys.stdout)
