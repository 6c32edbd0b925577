/* Processes that use a card.
 *
 * The kernel driver (simgpud) determines which processes the caller may see, and their pids: processes hidden from the
 * caller's pid namespace are not listed.
 */
#include "library.h"

#define NVML_NOT_AVAILABLE UINT64_MAX

/* Each with its MIG instance's ids, or UINT32_MAX. */
struct found {
    u32 count;
    struct nvml_process_v2 process[SIM_ROWS * 2];
};

static nvml_result add_processes(const struct session *session, u32 card, struct found *found) {
    struct sim_process list[SIM_ROWS];
    const int count = sim_processes_of(session->node, card, list, SIM_ROWS);
    if (count < 0) return NVML_UNKNOWN;
    const bool tells = blindness_of(session, card) != SIM_NO_BYTES;
    const struct sim_model *model = model_of(session, card);
    const bool instance = is_instance(session, card);
    const u32 most = sizeof(found->process) / sizeof(*found->process);
    for (int i = 0; i < count && found->count < most; i++)
        if (list[i].pid != 0)
            found->process[found->count++] = (struct nvml_process_v2){
                .pid = list[i].pid,
                .bytes = tells ? list[i].bytes : NVML_NOT_AVAILABLE,
                .gpu_instance = instance ? model->gpu_instance : NVML_NO_INSTANCE,
                .compute_instance = instance ? model->compute_instance : NVML_NO_INSTANCE,
            };
    return NVML_OK;
}

/* Of a whole card: includes its MIG instances. */
static nvml_result find_processes(const struct session *session, u32 card, struct found *found) {
    found->count = 0;
    if (blindness_of(session, card) == SIM_NO_LISTS) return NVML_NOT_SUPPORTED;
    TRY(add_processes(session, card, found));
    for (u32 i = next_instance(session, card, 0); i < session->file->cards; i = next_instance(session, card, i + 1))
        TRY(add_processes(session, i, found));
    return NVML_OK;
}

/* ---- Compute: all processes -------------------------------------------------------------------------------------- */

static nvml_result compute_v2(nvmlDevice device, u32 *room, struct nvml_process_v2 *processes) {
    CALL_ANY;
    NEEDS(room != NULL);
    struct found found;
    TRY(find_processes(call.session, card, &found));
    TRY(give_count(found.count, room, processes));
    for (u32 i = 0; i < found.count; i++) processes[i] = found.process[i];
    return NVML_OK;
}

NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice device, u32 *room, struct nvml_process_v2 *processes) {
    return compute_v2(device, room, processes);
}
NVML(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice device, u32 *room, struct nvml_process_v2 *processes) {
    return compute_v2(device, room, processes);
}

NVML(nvmlDeviceGetComputeRunningProcesses, nvmlDevice device, u32 *room, struct nvml_process_v1 *processes) {
    CALL_ANY;
    NEEDS(room != NULL);
    struct found found;
    TRY(find_processes(call.session, card, &found));
    TRY(give_count(found.count, room, processes));
    for (u32 i = 0; i < found.count; i++)
        processes[i] = (struct nvml_process_v1){found.process[i].pid, found.process[i].bytes};
    return NVML_OK;
}

/* ---- Graphics and MPS: none -------------------------------------------------------------------------------------- */

static nvml_result none(nvmlDevice device, u32 *room, const void *processes) {
    CALL_ANY;
    NEEDS(room != NULL);
    return give_count(0, room, processes);
}

#define NO_PROCESSES(name)                                                                                             \
    NVML(name, nvmlDevice device, u32 *room, void *processes) { return none(device, room, processes); }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)

/* ---- All kinds in one call, with protected memory ---------------------------------------------------------------- */

enum { MODE_COMPUTE, MODE_GRAPHICS, MODE_MPS, MODE_ALL, MODES };

NVML(nvmlDeviceGetRunningProcessDetailList, nvmlDevice device, struct nvml_process_details *list) {
    CALL_ANY;
    NEEDS(list != NULL);
    TRY(check_version(list->version, NVML_VERSION_OF(struct nvml_process_details, 1)));
    NEEDS(list->mode < MODES);
    if (model_of(call.session, card)->architecture < NVML_HOPPER) return NVML_NOT_SUPPORTED;
    struct found found;
    TRY(find_processes(call.session, card, &found));
    if (list->mode != MODE_COMPUTE && list->mode != MODE_ALL) found.count = 0;
    TRY(give_count(found.count, &list->count, list->processes));
    for (u32 i = 0; i < found.count; i++) {
        const struct nvml_process_v2 *process = &found.process[i];
        list->processes[i] = (struct nvml_process_detail){process->pid, process->bytes, process->gpu_instance,
                                                          process->compute_instance, 0};
    }
    return NVML_OK;
}
