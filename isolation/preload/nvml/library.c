/* Description of libnvidia-ml.so.1: what its functions return without a driver, or for names that the driver lacks. */
#include "../frame/entries.h"
#include "driver/nvml_abi.h"

#include <string.h>

static nvml_result no_library(void) { return NVML_LIBRARY_NOT_FOUND; }

static nvml_result no_session(void) { return NVML_UNINITIALIZED; }

static nvml_result no_function(void) { return NVML_FUNCTION_NOT_FOUND; }

/* The only function whose return value programs print. */
static const char *no_text(nvml_result result) {
    return result == NVML_LIBRARY_NOT_FOUND ? "The driver's library was not found" : "Unknown error";
}

static void *missing(const char *name, bool driver) {
    static const char starts[] = "nvmlInit";
    if (!strcmp(name, "nvmlErrorString")) return (void *)no_text;
    if (driver) return (void *)no_function;
    return !strncmp(name, starts, sizeof starts - 1) ? (void *)no_library : (void *)no_session;
}

const struct library library = {"libnvidia-ml.so.1", "nvmlInit_v2", missing, NULL};
