"""Calls NVIDIA's runtime library, and prints its answers and the functions of libcuda that it then knows."""

import ctypes
import json
import sys

from isolation.real_drivers.programs.pointers import places, words_of

driver = ctypes.CDLL("libcuda.so.1")  # a runtime closes a driver that is too old, which may be seen nevertheless
runtime, number = ctypes.CDLL(sys.argv[1]), ctypes.c_int(-1)
said = {}
for name in ("cudaDriverGetVersion", "cudaRuntimeGetVersion", "cudaGetDeviceCount"):
    said[name] = [getattr(runtime, name)(ctypes.byref(number)), number.value]
json.dump({"said": said, "knows": [place for place in places(words_of("libcudart")) if place]}, sys.stdout)
