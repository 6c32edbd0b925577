/* NVML: initialisation, handles, memory, texts. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

CASE(nvml_life, counted) {
    u32 count;
    TELL_NV("count_before", nvmlDeviceGetCount_v2, &count);
    TELL_NV("shutdown_before", nvmlShutdown);
    TELL_NV("init", nvmlInit_v2);
    TELL_NV("init_again", nvmlInit_v2);
    TELL_NV("shutdown", nvmlShutdown);
    TELL_NV("count_between", nvmlDeviceGetCount_v2, &count);
    TELL_NV("shutdown_again", nvmlShutdown);
    TELL_NV("count_after", nvmlDeviceGetCount_v2, &count);
    TELL_NV("shutdown_once_more", nvmlShutdown);
    tell("error_before_init", "%s", NV(nvmlErrorString, NVML_NOT_FOUND));
    tell("unknown_error", "%s", NV(nvmlErrorString, 12345));
}

CASE(nvml_life, with_flags) {
    u32 count;
    TELL_NV("none", nvmlInitWithFlags, 0);
    TELL_NV("no_cards_is_fine", nvmlInitWithFlags, 1);
    TELL_NV("count", nvmlDeviceGetCount_v2, &count);
}

CASE(nvml_life, texts) {
    char text[96];
    int cuda = 0, driver = 0;
    NEED_NV(nvmlInit_v2);
    TELL_NV("driver_room_of_1", nvmlSystemGetDriverVersion, text, 1);
    NEED_NV(nvmlSystemGetDriverVersion, text, sizeof text);
    int major, minor, taken = 0;
    tell_yes("driver_is_numbers", sscanf(text, "%d.%d%n", &major, &minor, &taken) == 2 && taken >= 4);
    TELL_NV("driver_no_room", nvmlSystemGetDriverVersion, NULL, 80);
    NEED_NV(nvmlSystemGetNVMLVersion, text, sizeof text);
    tell_yes("library_is_numbers", sscanf(text, "%d.%d", &major, &minor) == 2);
    NEED_NV(nvmlSystemGetCudaDriverVersion_v2, &cuda);
    NEED(cuDriverGetVersion, &driver);
    tell_yes("cuda_is_as_cuda_says", cuda == driver);
    TELL_NV("cuda_no_room", nvmlSystemGetCudaDriverVersion_v2, NULL);
    TELL_NV("name_of_no_process", nvmlSystemGetProcessName, 0x7ffffff0, text, sizeof text);
}

CASE(nvml_handles, found) {
    char uuid[96], small[4];
    u32 count = 0, index = 99, minor;
    nvmlDevice device, again;
    struct nvml_pci pci;
    NEED_NV(nvmlInit_v2);
    NEED_NV(nvmlDeviceGetCount_v2, &count);
    TELL_NV("too_great", nvmlDeviceGetHandleByIndex_v2, count, &device);
    TELL_NV("no_room", nvmlDeviceGetHandleByIndex_v2, 0, NULL);
    NEED_NV(nvmlDeviceGetHandleByIndex_v2, 0, &device);
    NEED_NV(nvmlDeviceGetIndex, device, &index);
    tell_number("index_of_0", index);
    NEED_NV(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
    tell_yes("uuid_is_a_gpus", !strncmp(uuid, "GPU-", 4) && strlen(uuid) == 40);
    NEED_NV(nvmlDeviceGetHandleByUUID, uuid, &again);
    tell_yes("same_by_uuid", again == device);
    NEED_NV(nvmlDeviceGetPciInfo_v3, device, &pci);
    NEED_NV(nvmlDeviceGetHandleByPciBusId_v2, pci.bus_id, &again);
    tell_yes("same_by_bus_id", again == device);
    TELL_NV("by_short_bus_id", nvmlDeviceGetHandleByPciBusId_v2, pci.legacy_bus_id, &again);
    uuid[39] = uuid[39] == '0' ? '1' : '0';
    TELL_NV("other_uuid", nvmlDeviceGetHandleByUUID, uuid, &again);
    TELL_NV("no_uuid_at_all", nvmlDeviceGetHandleByUUID, "card", &again);
    TELL_NV("null_uuid", nvmlDeviceGetHandleByUUID, NULL, &again);
    TELL_NV("other_bus_id", nvmlDeviceGetHandleByPciBusId_v2, "ffff:ff:1f.0", &again);
    TELL_NV("no_bus_id_at_all", nvmlDeviceGetHandleByPciBusId_v2, "card", &again);
    TELL_NV("uuid_room_of_4", nvmlDeviceGetUUID, device, small, sizeof small);
    TELL_NV("name_room_of_4", nvmlDeviceGetName, device, small, sizeof small);
    TELL_NV("minor", nvmlDeviceGetMinorNumber, device, &minor);
    TELL_NV("null_handle", nvmlDeviceGetIndex, NULL, &index);
}

/* A real driver may crash here. */
CASE(nvml_handles, nonsense) {
    u64 nothing[64] = {0};
    u32 index;
    NEED_NV(nvmlInit_v2);
    TELL_NV("index", nvmlDeviceGetIndex, (nvmlDevice)(void *)nothing, &index);
}

CASE(nvml_handles, as_cuda_says) {
    char uuid[96], text[40];
    CUuuid bytes;
    int major = 0, minor = 0, cuda_major = -1;
    const nvmlDevice device = open_nvml();
    NEED_NV(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
    NEED(cuDeviceGetUuid_v2, &bytes, 0);
    const unsigned char *b = (const unsigned char *)bytes.bytes;
    snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    tell_yes("uuid", !strcmp(uuid + 4, text));
    NEED_NV(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);
    NEED(cuDeviceGetAttribute, &cuda_major, 75, 0);
    tell_yes("compute_capability", major == cuda_major);
}

CASE(nvml_memory, forms) {
    struct nvml_memory one;
    struct nvml_memory_v2 two = {.version = NVML_VERSION_OF(struct nvml_memory_v2, 2)};
    size_t total;
    const nvmlDevice device = open_nvml();
    NEED_NV(nvmlDeviceGetMemoryInfo, device, &one);
    NEED_NV(nvmlDeviceGetMemoryInfo_v2, device, &two);
    tell_number("version_word", two.version);
    tell_yes("total_is_the_same", one.total == two.total);
    tell_yes("first_adds_up", one.used + one.free == one.total);
    tell_yes("second_adds_up", two.used + two.free + two.reserved == two.total);
    tell_yes("first_counts_reserved_as_used", one.used == two.used + two.reserved);
    NEED(cuDeviceTotalMem_v2, &total, 0);
    tell_yes("cuda_has_less", total < one.total);
    tell_yes("cuda_has_what_is_not_reserved", total == two.total - two.reserved);
    two.version = NVML_VERSION_OF(struct nvml_memory_v2, 1);
    TELL_NV("version_1", nvmlDeviceGetMemoryInfo_v2, device, &two);
    two.version = 0;
    TELL_NV("version_0", nvmlDeviceGetMemoryInfo_v2, device, &two);
    TELL_NV("no_room", nvmlDeviceGetMemoryInfo, device, NULL);
}

static u64 used(nvmlDevice device) {
    struct nvml_memory memory;
    NEED_NV(nvmlDeviceGetMemoryInfo, device, &memory);
    return memory.used;
}

CASE(nvml_memory, follows_cuda) {
    const nvmlDevice device = open_nvml();
    open_card();
    const u64 before = used(device);
    const CUdeviceptr address = allocated(64 * MIB);
    tell_number("after_64_mib", used(device) - before);
    NEED(cuMemFree_v2, address);
    tell_number("after_free", used(device) - before);
}
