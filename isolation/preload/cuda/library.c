/* Description of libcuda.so.1, and what its functions return without a driver, or for names that the driver lacks. */
#include "../frame/entries.h"
#include "../hooks/hooks.h"
#include "../memory/growth.h"
#include "../memory/reserves.h"
#include "../memory/shared.h"
#include "../migration/migration.h"
#include "../presence/presence.h"

#include <string.h>

static CUresult no_device(void) { return CUDA_ERROR_NO_DEVICE; }

static CUresult not_found(void) { return CUDA_ERROR_NOT_FOUND; }

/* Programs print the text without checking the result. */
static CUresult no_text(CUresult error, const char **text) {
    (void)error;
    if (text) *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult no_address(const char *name, void **address) {
    (void)name;
    if (address) *address = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

static void *missing(const char *name, bool driver) {
    (void)driver;
    if (!strcmp(name, "cuInit")) return (void *)no_device;
    if (!strcmp(name, "cuGetErrorString") || !strcmp(name, "cuGetErrorName")) return (void *)no_text;
    if (!strncmp(name, "cuGetProcAddress", sizeof "cuGetProcAddress" - 1)) return (void *)no_address;
    return (void *)not_found;
}

const struct library library = {"libcuda.so.1", "cuInit", missing, moving_through};

const struct part session_parts[] = {
#define PART(...) {__VA_ARGS__},
#include "parts.def"
#undef PART
};

const unsigned session_parts_count = sizeof session_parts / sizeof *session_parts;
