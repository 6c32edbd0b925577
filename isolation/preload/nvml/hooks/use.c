/* Processes' use of a device: the driver's lists without other containers' processes. When the caller asks only for the
 * length, it gets the driver's, which is an upper bound. */
#include "container.h"

#define TAKE_ONLY_OURS(list, kept, count, processes)                                                                   \
    do {                                                                                                               \
        for (unsigned n = 0; n < (count); n++)                                                                         \
            if (container_has(processes, (list)[n].pid)) (list)[(kept)++] = (list)[n];                                 \
    } while (0)

HOOK_CALL(nvmlDeviceGetProcessUtilization, nvmlDevice device, struct nvml_process_use *list, unsigned *room,
          uint64_t since_us) {
    struct nvml_process_use all[MOST_OF_CARD];
    struct processes processes;
    unsigned count = MOST_OF_CARD, kept = 0;
    if (!list || !room) return DRIVER(REAL(nvmlDeviceGetProcessUtilization)(device, list, room, since_us));
    TRY(DRIVER(REAL(nvmlDeviceGetProcessUtilization)(device, all, &count, since_us)));
    TRY(container_processes(device, &processes));
    TAKE_ONLY_OURS(all, kept, count, &processes);
    if (!kept) return NVML_NOT_FOUND;
    TRY(container_count(kept, room, list));
    for (unsigned n = 0; n < kept; n++) list[n] = all[n];
    return NVML_OK;
}

HOOK_CALL(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice device, struct nvml_process_uses *list) {
    struct nvml_process_use_v1 all[MOST_OF_CARD];
    struct processes processes;
    unsigned kept = 0;
    if (!list || !list->uses) return DRIVER(REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, list));
    struct nvml_process_uses whole = *list;
    whole.count = MOST_OF_CARD;
    whole.uses = all;
    TRY(DRIVER(REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, &whole)));
    TRY(container_processes(device, &processes));
    TAKE_ONLY_OURS(all, kept, whole.count, &processes);
    if (!kept) return NVML_NOT_FOUND;
    TRY(container_count(kept, &list->count, list->uses));
    for (unsigned n = 0; n < kept; n++) list->uses[n] = all[n];
    return NVML_OK;
}

/* ---- accounting ------------------------------------------------------------------------------------------------- */

HOOK_CALL(nvmlDeviceGetAccountingPids, nvmlDevice device, unsigned *room, unsigned *list) {
    unsigned all[MOST_OF_CARD * 8];
    struct processes processes;
    unsigned count = MOST_OF_CARD * 8, kept = 0;
    if (!room) return DRIVER(REAL(nvmlDeviceGetAccountingPids)(device, room, list));
    TRY(DRIVER(REAL(nvmlDeviceGetAccountingPids)(device, &count, all)));
    TRY(container_processes(device, &processes));
    for (unsigned n = 0; n < count; n++)
        if (container_has(&processes, all[n])) all[kept++] = all[n];
    TRY(container_count(kept, room, list));
    for (unsigned n = 0; n < kept; n++) list[n] = all[n];
    return NVML_OK;
}

HOOK_CALL(nvmlDeviceGetAccountingStats, nvmlDevice device, unsigned pid, void *stats) {
    struct processes processes;
    TRY(container_processes(device, &processes));
    if (!container_has(&processes, pid)) return NVML_NOT_FOUND;
    return DRIVER(REAL(nvmlDeviceGetAccountingStats)(device, pid, stats));
}
