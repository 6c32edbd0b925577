"""Which function of libcuda cuda-python chose for each name, as JSON. The words are the folders of its packages."""

import json
import sys
from importlib import import_module

from isolation.real_drivers.programs.pointers import places

sys.path += sys.argv[1:]
chosen: dict[str, int] = import_module("cuda.bindings._internal.driver")._inspect_function_pointers()
json.dump(dict(zip(chosen, places(chosen.values()), strict=True)), sys.stdout)
