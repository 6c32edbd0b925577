"""The function of libcuda that numba chooses for each of its names, as JSON: numba's own `_find_api` decides.

Reads the text of its modules `driver` and `drvapi`: their import needs LLVM, and a `Driver` object a card.
"""

import ast
import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def find_api(module: Path, *, per_thread: bool) -> Callable[..., Any]:
    functions = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.FunctionDef))
    function = next(node for node in functions if node.name == "_find_api")
    space: dict[str, Any] = {
        "config": SimpleNamespace(CUDA_PER_THREAD_DEFAULT_STREAM=per_thread),
        "USE_NV_BINDING": False,
    }
    exec(compile(ast.Module([function], []), str(module), "exec"), space)  # noqa: S102  a package that was checked
    found: Callable[..., Any] = space["_find_api"]
    return found


def names(module: Path) -> list[str]:
    tables = (node.value for node in ast.parse(module.read_text()).body if isinstance(node, ast.Assign))
    table = next(value for value in tables if isinstance(value, ast.Dict))
    return [ast.literal_eval(key) for key in table.keys if key]


folder = Path(sys.argv[1])
driver = SimpleNamespace(lib=ctypes.CDLL("libcuda.so.1"))
chosen: dict[str, str] = {}
for per_thread in (False, True):
    find = find_api(folder / "driver.py", per_thread=per_thread)
    for name in names(folder / "drvapi.py"):
        chosen[f"{name} {per_thread}"] = getattr(find(driver, name), "__name__", "")
json.dump(chosen, sys.stdout)
