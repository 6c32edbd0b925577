/* NVML: a card's processes, their use, events, and MIG instances. */
#include "conformance.h"

#include <unistd.h>

enum { ROOM = 256 };

static const struct nvml_process_v2 *mine(nvmlDevice device) {
    static struct nvml_process_v2 list[ROOM];
    u32 count = ROOM;
    NEED_NV(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, list);
    for (u32 i = 0; i < count; i++)
        if (list[i].pid == (u32)getpid()) return &list[i];
    return NULL;
}

/* In a container, NVML may list host pids: then it finds no process under its own pid, here as there. */
CASE(nvml_processes, come_and_go) {
    CUcontext context;
    const nvmlDevice device = open_nvml();
    tell_yes("before_a_context", mine(device) != NULL);
    NEED(cuCtxCreate_v2, &context, 0, 0);
    const struct nvml_process_v2 *process = mine(device);
    tell_yes("with_a_context", process != NULL);
    if (process) {
        tell_yes("its_memory_is_told", process->bytes > 0 && process->bytes != UINT64_MAX);
        tell("instances", "%d %d", (int)process->gpu_instance, (int)process->compute_instance);
        const u64 before = process->bytes;
        allocated(64 * MIB);
        tell_number("grew_for_64_mib", mine(device)->bytes - before);
    }
    NEED(cuCtxDestroy_v2, context);
    tell_yes("after_the_context", mine(device) != NULL);
}

CASE(nvml_processes, room) {
    struct nvml_process_v1 first[ROOM];
    struct nvml_process_v2 second[ROOM];
    const nvmlDevice device = open_nvml();
    open_card();
    u32 count = 0;
    TELL_NV("room_of_0", nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL);
    tell_yes("count_is_told", count > 0);
    u32 counts[3] = {ROOM, ROOM, ROOM};
    NEED_NV(nvmlDeviceGetComputeRunningProcesses, device, &counts[0], first);
    NEED_NV(nvmlDeviceGetComputeRunningProcesses_v2, device, &counts[1], second);
    NEED_NV(nvmlDeviceGetComputeRunningProcesses_v3, device, &counts[2], second);
    tell_yes("forms_agree", counts[0] == counts[1] && counts[1] == counts[2]);
    TELL_NV("no_count", nvmlDeviceGetComputeRunningProcesses_v3, device, NULL, second);
    count = ROOM;
    TELL_NV("no_list", nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL);
    count = ROOM;
    TELL_NV("graphics", nvmlDeviceGetGraphicsRunningProcesses_v3, device, &count, second);
    tell_number("graphics_count", count);
    count = ROOM;
    TELL_NV("mps", nvmlDeviceGetMPSComputeRunningProcesses_v3, device, &count, second);
}

CASE(nvml_processes, details) {
    struct nvml_process_detail list[ROOM];
    struct nvml_process_details details = {NVML_VERSION_OF(struct nvml_process_details, 1), 0, ROOM, list};
    int major = 0, minor;
    const nvmlDevice device = open_nvml();
    open_card();
    NEED_NV(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);
    if (major < 9) skip("cards before Hopper do not tell details");
    TELL_NV("compute", nvmlDeviceGetRunningProcessDetailList, device, &details);
    details.count = 0;
    TELL_NV("room_of_0", nvmlDeviceGetRunningProcessDetailList, device, &details);
    details.version = 0;
    TELL_NV("version_0", nvmlDeviceGetRunningProcessDetailList, device, &details);
}

CASE(nvml_use, rates) {
    struct nvml_utilization rates = {999, 999};
    const nvmlDevice device = open_nvml();
    NEED_NV(nvmlDeviceGetUtilizationRates, device, &rates);
    tell_yes("are_percent", rates.gpu <= 100 && rates.memory <= 100);
    TELL_NV("no_room", nvmlDeviceGetUtilizationRates, device, NULL);
}

CASE(nvml_use, of_processes) {
    struct nvml_process_use uses[ROOM];
    u32 count = 0;
    const nvmlDevice device = open_nvml();
    open_card();
    for (int i = 0; i < 30; i++) need("cuLaunchKernel", spin(NULL, 100));
    usleep(2500 * 1000); /* samples are taken once per sixth of a second to once per second */
    TELL_NV("room_of_0", nvmlDeviceGetProcessUtilization, device, NULL, &count, 0);
    tell_yes("count_is_told", count > 0);
    count = ROOM;
    const nvml_result code = NV(nvmlDeviceGetProcessUtilization, device, uses, &count, 0);
    tell_nvml("of_all_time", code);
    u32 greatest = 0;
    for (u32 i = 0; i < count && code == NVML_OK; i++)
        if (uses[i].pid == (u32)getpid() && uses[i].sm > greatest) greatest = uses[i].sm;
    tell_yes("a_busy_process_is_above_50", greatest > 50 && greatest <= 100);
    count = ROOM;
    TELL_NV("of_the_future", nvmlDeviceGetProcessUtilization, device, uses, &count, UINT64_MAX / 2);
    struct nvml_process_uses wrong = {.version = 0};
    TELL_NV("information_version_0", nvmlDeviceGetProcessesUtilizationInfo, device, &wrong);
}

CASE(nvml_use, samples) {
    enum { GPU = 1, NO_KIND = 99 };
    u32 count = 0;
    int type = -1;
    const nvmlDevice device = open_nvml();
    TELL_NV("asking_for_the_count", nvmlDeviceGetSamples, device, GPU, 0, &type, &count, NULL);
    tell_yes("count_is_told", count > 0);
    TELL_NV("unknown_kind", nvmlDeviceGetSamples, device, NO_KIND, 0, &type, &count, NULL);
}

CASE(nvml_events, sets) {
    nvmlEventSet set;
    struct nvml_event event;
    u64 types = 0;
    const nvmlDevice device = open_nvml();
    NEED_NV(nvmlEventSetCreate, &set);
    NEED_NV(nvmlDeviceGetSupportedEventTypes, device, &types);
    tell_yes("xid_is_supported", types & 8);
    TELL_NV("wait_for_none", nvmlEventSetWait_v2, set, &event, 10);
    TELL_NV("register", nvmlDeviceRegisterEvents, device, 8, set);
    TELL_NV("register_unknown", nvmlDeviceRegisterEvents, device, 1ull << 60, set);
    TELL_NV("wait", nvmlEventSetWait_v2, set, &event, 10);
    TELL_NV("wait_not_at_all", nvmlEventSetWait_v2, set, &event, 0);
    TELL_NV("wait_no_room", nvmlEventSetWait_v2, set, NULL, 0);
    TELL_NV("free", nvmlEventSetFree, set);
    TELL_NV("create_no_room", nvmlEventSetCreate, NULL);
    TELL_NV("free_null", nvmlEventSetFree, NULL);
}

/* ---- MIG --------------------------------------------------------------------------------------------------------- */

static void tell_uncut(nvmlDevice device) {
    nvmlDevice mig;
    nvmlGpuInstance instance;
    u32 number = 99;
    struct nvml_attributes attributes;
    TELL_NV("attributes", nvmlDeviceGetAttributes_v2, device, &attributes);
    TELL_NV("mig_device_0", nvmlDeviceGetMigDeviceHandleByIndex, device, 0, &mig);
    TELL_NV("parent_of_a_whole_card", nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device, &mig);
    TELL_NV("gpu_instance_id", nvmlDeviceGetGpuInstanceId, device, &number);
    TELL_NV("compute_instance_id", nvmlDeviceGetComputeInstanceId, device, &number);
    TELL_NV("instance_0", nvmlDeviceGetGpuInstanceById, device, 0, &instance);
    NEED_NV(nvmlDeviceIsMigDeviceHandle, device, &number);
    tell_number("is_mig", number);
}

CASE(nvml_mig, off) {
    u32 current = 9, pending = 9, count = 99;
    const nvmlDevice device = open_nvml();
    if (NV(nvmlDeviceGetMigMode, device, &current, &pending)) skip("this card cannot be cut");
    if (current) skip("this card is cut");
    tell_number("mode", current);
    NEED_NV(nvmlDeviceGetMaxMigDeviceCount, device, &count);
    tell_number("most_instances", count);
    TELL_NV("no_room", nvmlDeviceGetMigMode, device, NULL, NULL);
    tell_uncut(device);
}

CASE(nvml_mig, never) {
    u32 current, pending, count = 99;
    const nvmlDevice device = open_nvml();
    const nvml_result code = NV(nvmlDeviceGetMigMode, device, &current, &pending);
    if (!code) skip("this card can be cut");
    tell_nvml("mode", code);
    TELL_NV("most_instances", nvmlDeviceGetMaxMigDeviceCount, device, &count);
    tell_uncut(device);
}

CASE(nvml_kinds, unknown) {
    u32 value;
    const nvmlDevice device = open_nvml();
    TELL_NV("temperature", nvmlDeviceGetTemperature, device, 0, &value);
    TELL_NV("temperature_of_no_sensor", nvmlDeviceGetTemperature, device, 99, &value);
    TELL_NV("clock", nvmlDeviceGetClockInfo, device, 0, &value);
    TELL_NV("clock_of_no_kind", nvmlDeviceGetClockInfo, device, 99, &value);
}
