/* A card's memory size and use. */
#include "library.h"

struct account {
    u64 total, reserved, used;
};

/* Of a whole card: includes its MIG instances. */
static struct account account_of(const struct session *session, u32 card) {
    const struct sim_node_file *file = session->file;
    const struct sim_model *model = model_of(session, card);
    struct account account = {model->memory, model->reserved, atomic_load(&file->card[card].live.used)};
    for (u32 i = next_instance(session, card, 0); i < file->cards; i = next_instance(session, card, i + 1))
        account.used += atomic_load(&file->card[i].live.used);
    return account;
}

/* The first version counts the driver's reserved memory as used. */
NVML(nvmlDeviceGetMemoryInfo, nvmlDevice device, struct nvml_memory *memory) {
    CALL_ANY;
    NEEDS(memory != NULL);
    if (blindness_of(call.session, card) == SIM_NO_AMOUNT) return NVML_NOT_SUPPORTED;
    const struct account account = account_of(call.session, card);
    const u64 used = account.reserved + account.used;
    *memory = (struct nvml_memory){account.total, account.total - used, used};
    return NVML_OK;
}

NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice device, struct nvml_memory_v2 *memory) {
    CALL_ANY;
    NEEDS(memory != NULL);
    TRY(check_version(memory->version, NVML_VERSION_OF(struct nvml_memory_v2, 2)));
    if (blindness_of(call.session, card) == SIM_NO_AMOUNT) return NVML_NOT_SUPPORTED;
    const struct account account = account_of(call.session, card);
    memory->total = account.total;
    memory->reserved = account.reserved;
    memory->used = account.used;
    memory->free = account.total - account.reserved - account.used;
    return NVML_OK;
}

/* The window through which the host accesses a card: larger than its memory, or 256 MiB on consumer cards. */
NVML(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice device, struct nvml_bar1 *bar1) {
    CALL_ANY;
    NEEDS(bar1 != NULL);
    const struct sim_model *model = model_of(call.session, card);
    u64 total = 256 * SIM_MIB;
    while (!is_geforce(model) && total < model->memory) total *= 2;
    *bar1 = (struct nvml_bar1){total, total - SIM_MIB, SIM_MIB};
    return NVML_OK;
}
