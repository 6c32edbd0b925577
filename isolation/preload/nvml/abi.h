/* NVML's numbers, handles and structures as far as hooks need them: interface facts in our own words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef unsigned nvml_result;
typedef struct nvml_device *nvmlDevice;

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};
