/* Common parts of these hooks, which present the device as the container has it.
 *
 * The driver is called first, so that errors about handles, arguments and versions are its own; then its answer is
 * replaced by the container's. If the broker does not respond the result is NVML_UNKNOWN, never what other containers
 * use.
 */
#pragma once

#include "../../core/hook.h"
#include "../../core/partage_core.h"
#include "driver/nvml_abi.h"

enum hook {
#define HOOK(name) HOOK_##name,
#include "hooks.def"
    HOOKS
};

#define HOOK_CALL(name, ...) DEFINE_HOOK(nvml_result, name, __VA_ARGS__)
#define REAL_CALL(name, ...) DECLARE_REAL(nvml_result, name, __VA_ARGS__)

/* Returns from the function on any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const nvml_result try_result = (call);                                                                         \
        if (try_result != NVML_OK) return try_result;                                                                  \
    } while (0)

enum { MOST_PROCESSES = 256, MOST_OF_CARD = 512 };

/* The interface of libcuda.so.1 in the same folder; NULL if it is absent. */
HIDDEN const struct partage_core *core(void);

/* The container's processes on a device. */
struct processes {
    unsigned count;
    struct partage_process list[MOST_PROCESSES];
};

/* The container's number of a device. */
HIDDEN nvml_result container_card(nvmlDevice device, unsigned *card);

HIDDEN nvml_result container_processes(nvmlDevice device, struct processes *processes);
HIDDEN bool container_has(const struct processes *processes, uint32_t pid);

/* NVML's convention for lists: *room is the capacity, then the number of elements. NVML_INSUFFICIENT_SIZE: they do not
 * fit. */
HIDDEN nvml_result container_count(unsigned count, unsigned *room, const void *list);
