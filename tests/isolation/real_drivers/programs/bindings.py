"""The function of libcuda that cuda-python chose for each name, or the error, as JSON. Arguments: package folders."""

import json
import sys
from importlib import import_module

from isolation.real_drivers.programs.pointers import places

sys.path += sys.argv[1:]
refusal, chosen = "", dict[str, int]()
try:
    chosen = import_module("cuda.bindings._internal.driver")._inspect_function_pointers()
except RuntimeError as error:  # the driver is too old
    refusal = str(error)
json.dump({"refusal": refusal, "chosen": dict(zip(chosen, places(chosen.values()), strict=True))}, sys.stdout)
