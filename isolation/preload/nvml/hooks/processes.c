/* Processes that use a device: the container's, by their pids inside it. The broker supplies them, since the driver
 * reports pids sometimes of one namespace and sometimes of another. */
#include "container.h"

/* Keeps the driver's verdict on handle and arguments, and ignores how many processes of others there are. */
static nvml_result checked(nvml_result result) { return result == NVML_INSUFFICIENT_SIZE ? NVML_OK : result; }

/* ---- compute ---------------------------------------------------------------------------------------------------- */

static nvml_result give_v2(nvmlDevice device, unsigned *room, struct nvml_process_v2 *list) {
    struct processes processes;
    TRY(container_processes(device, &processes));
    TRY(container_count(processes.count, room, list));
    for (unsigned n = 0; n < processes.count; n++)
        list[n] = (struct nvml_process_v2){processes.list[n].pid, processes.list[n].bytes, NVML_NO_INSTANCE,
                                           NVML_NO_INSTANCE};
    return NVML_OK;
}

HOOK_CALL(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice device, unsigned *room, struct nvml_process_v2 *list) {
    unsigned none = 0;
    TRY(checked(DRIVER(REAL(nvmlDeviceGetComputeRunningProcesses_v3)(device, room ? &none : NULL, NULL))));
    return give_v2(device, room, list);
}

HOOK_CALL(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice device, unsigned *room, struct nvml_process_v2 *list) {
    unsigned none = 0;
    TRY(checked(DRIVER(REAL(nvmlDeviceGetComputeRunningProcesses_v2)(device, room ? &none : NULL, NULL))));
    return give_v2(device, room, list);
}

HOOK_CALL(nvmlDeviceGetComputeRunningProcesses, nvmlDevice device, unsigned *room, struct nvml_process_v1 *list) {
    unsigned none = 0;
    struct processes processes;
    TRY(checked(DRIVER(REAL(nvmlDeviceGetComputeRunningProcesses)(device, room ? &none : NULL, NULL))));
    TRY(container_processes(device, &processes));
    TRY(container_count(processes.count, room, list));
    for (unsigned n = 0; n < processes.count; n++)
        list[n] = (struct nvml_process_v1){processes.list[n].pid, processes.list[n].bytes};
    return NVML_OK;
}

/* ---- graphics and MPS: none, since metered processes compute ---------------------------------------------------- */

#define NO_PROCESSES(name)                                                                                             \
    HOOK_CALL(name, nvmlDevice device, unsigned *room, void *list) {                                                   \
        unsigned none = 0;                                                                                             \
        TRY(checked(DRIVER(REAL(name)(device, room ? &none : NULL, NULL))));                                           \
        return container_count(0, room, list);                                                                         \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* ---- all kinds in one call -------------------------------------------------------------------------------------- */

HOOK_CALL(nvmlDeviceGetRunningProcessDetailList, nvmlDevice device, struct nvml_process_details *list) {
    struct processes processes;
    struct nvml_process_details none;
    if (list) none = (struct nvml_process_details){.version = list->version, .mode = list->mode};
    TRY(checked(DRIVER(REAL(nvmlDeviceGetRunningProcessDetailList)(device, list ? &none : NULL))));
    TRY(container_processes(device, &processes));
    if (list->mode != NVML_MODE_COMPUTE && list->mode != NVML_MODE_ALL) processes.count = 0;
    TRY(container_count(processes.count, &list->count, list->processes));
    for (unsigned n = 0; n < processes.count; n++)
        list->processes[n] = (struct nvml_process_detail){processes.list[n].pid, processes.list[n].bytes,
                                                          NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    return NVML_OK;
}
