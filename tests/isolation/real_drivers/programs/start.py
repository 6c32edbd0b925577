"""Answers of the driver's libraries when a program starts them, as JSON."""

import ctypes
import json
import sys

cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlErrorString.restype = ctypes.c_char_p
version, text = ctypes.c_int(-1), ctypes.c_char_p()
said = {
    "cuDriverGetVersion": [cuda.cuDriverGetVersion(ctypes.byref(version)), version.value],
    "cuInit": cuda.cuInit(0),
    "cuDeviceGetCount": cuda.cuDeviceGetCount(ctypes.byref(version)),
    "cuGetErrorString": [cuda.cuGetErrorString(100, ctypes.byref(text)), str(text.value)],
    "nvmlInit_v2": nvml.nvmlInit_v2(),
    "nvmlErrorString": [str(nvml.nvmlErrorString(code)) for code in range(32)],
    "nvmlSystemGetCudaDriverVersion": nvml.nvmlSystemGetCudaDriverVersion(ctypes.byref(version)),
}
json.dump(said, sys.stdout)
