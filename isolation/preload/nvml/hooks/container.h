/* What these hooks share: the device as the container has it.
 *
 * The driver is asked first, so that it says what it has to say about handles, arguments and versions; then its answer
 * is made that of the container. Where the broker does not answer, NVML_UNKNOWN: never what others use.
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

/* Leaves the function with any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const nvml_result try_result = (call);                                                                         \
        if (try_result != NVML_OK) return try_result;                                                                  \
    } while (0)

enum { MOST_PROCESSES = 256, MOST_OF_CARD = 512 };

/* What libcuda.so.1 of the same folder shares; NULL where it is not there. */
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

/* How NVML answers with lists: *room is how many fit, and then how many there are. NVML_INSUFFICIENT_SIZE: they don't
 * fit. */
HIDDEN nvml_result container_count(unsigned count, unsigned *room, const void *list);
