/* What NVML's results are called. */
#include "library.h"

__attribute__((visibility("default"))) const char *nvmlErrorString(nvml_result result);

static const char *const names[] = {
    [NVML_OK] = "Success",
    [NVML_UNINITIALIZED] = "Uninitialized",
    [NVML_INVALID_ARGUMENT] = "Invalid Argument",
    [NVML_NOT_SUPPORTED] = "Not Supported",
    [NVML_NO_PERMISSION] = "Insufficient Permissions",
    [5] = "Already Initialized",
    [NVML_NOT_FOUND] = "Not Found",
    [NVML_INSUFFICIENT_SIZE] = "Insufficient Size",
    [8] = "Insufficient External Power",
    [NVML_DRIVER_NOT_LOADED] = "Driver Not Loaded",
    [NVML_TIMEOUT] = "Timeout",
    [11] = "Interrupt Request Issue",
    [12] = "NVML Shared Library Not Found",
    [13] = "Function Not Found",
    [14] = "Corrupted infoROM",
    [NVML_GPU_IS_LOST] = "GPU is lost",
    [16] = "GPU requires reset",
    [17] = "GPU access blocked by the operating system",
    [18] = "Driver/library version mismatch",
    [19] = "In use by another client",
    [NVML_OUT_OF_MEMORY] = "Insufficient Memory",
    [21] = "No data",
    [22] = "ECC is not supported on vGPU",
    [23] = "Insufficient resources",
    [24] = "Frequency not supported",
    [NVML_VERSION_MISMATCH] = "Argument version mismatch",
    [26] = "Deprecated",
    [27] = "Not ready",
    [28] = "GPU not found",
    [29] = "Invalid state",
    [30] = "Reset type not supported",
};

const char *nvmlErrorString(nvml_result result) {
    return result < sizeof(names) / sizeof(*names) ? names[result] : "Unknown Error";
}
