/* The container's memory limit on a device, and what is charged to it. */
#include "container.h"

struct amounts {
    uint64_t total, free, used;
};

static nvml_result amounts_of(nvmlDevice device, struct amounts *amounts) {
    unsigned card;
    TRY(container_card(device, &card));
    if (!core()->view(card, &amounts->total, &amounts->used)) return NVML_UNKNOWN;
    if (amounts->used > amounts->total) amounts->used = amounts->total;
    amounts->free = amounts->total - amounts->used;
    return NVML_OK;
}

HOOK_CALL(nvmlDeviceGetMemoryInfo, nvmlDevice device, struct nvml_memory *memory) {
    struct amounts amounts;
    TRY(DRIVER(REAL(nvmlDeviceGetMemoryInfo)(device, memory)));
    TRY(amounts_of(device, &amounts));
    *memory = (struct nvml_memory){amounts.total, amounts.free, amounts.used};
    return NVML_OK;
}

HOOK_CALL(nvmlDeviceGetMemoryInfo_v2, nvmlDevice device, struct nvml_memory_v2 *memory) {
    struct amounts amounts;
    TRY(DRIVER(REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory)));
    TRY(amounts_of(device, &amounts));
    memory->total = amounts.total;
    memory->reserved = 0;
    memory->free = amounts.free;
    memory->used = amounts.used;
    return NVML_OK;
}
