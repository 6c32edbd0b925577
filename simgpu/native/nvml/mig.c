/* MIG: the instances of a card and their handles. Profiles are in mig_profiles.c.
 *
 * Cards are partitioned when the node is created: nothing here creates or destroys an instance.
 */
#include "library.h"

enum { MOST_INSTANCES = 7 };

/* ---- Of whole cards ---------------------------------------------------------------------------------------------- */

NVML(nvmlDeviceGetMigMode, nvmlDevice device, u32 *current, u32 *pending) {
    CALL_CARD;
    NEEDS(current != NULL && pending != NULL);
    if (!model->mig_capable) return NVML_NOT_SUPPORTED;
    *current = *pending = model->mig_enabled;
    return NVML_OK;
}

NVML(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice device, u32 *count) {
    CALL_CARD_OUT(count);
    *count = model->mig_enabled ? MOST_INSTANCES : 0;
    return NVML_OK;
}

/* The n-th instance of a card. */
NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice device, u32 index, nvmlDevice *instance) {
    CALL_CARD_OUT(instance);
    if (!model->mig_capable) return NVML_NOT_SUPPORTED;
    NEEDS(index < MOST_INSTANCES);
    u32 found = next_instance(call.session, card, 0);
    while (index-- > 0 && found < call.session->file->cards) found = next_instance(call.session, card, found + 1);
    if (found >= call.session->file->cards) return NVML_NOT_FOUND;
    *instance = device_of(call.session, found);
    return NVML_OK;
}

/* ---- Of instances ------------------------------------------------------------------------------------------------ */

/* As CALL_ANY, for MIG instances only. */
#define CALL_INSTANCE(pointer)                                                                                         \
    CALL_ANY;                                                                                                          \
    NEEDS((pointer) != NULL);                                                                                          \
    if (!is_instance(call.session, card)) return NVML_NOT_SUPPORTED;                                                   \
    const struct sim_model *const model = model_of(call.session, card);                                                \
    (void)model

NVML(nvmlDeviceIsMigDeviceHandle, nvmlDevice device, u32 *is) {
    CALL_ANY;
    NEEDS(is != NULL);
    *is = is_instance(call.session, card);
    return NVML_OK;
}

NVML(nvmlDeviceGetGpuInstanceId, nvmlDevice device, u32 *id) {
    CALL_INSTANCE(id);
    *id = model->gpu_instance;
    return NVML_OK;
}

NVML(nvmlDeviceGetComputeInstanceId, nvmlDevice device, u32 *id) {
    CALL_INSTANCE(id);
    *id = model->compute_instance;
    return NVML_OK;
}

NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice device, nvmlDevice *whole) {
    CALL_INSTANCE(whole);
    *whole = device_of(call.session, whole_card(call.session, card));
    return NVML_OK;
}

static nvml_result attributes_of(nvmlDevice device, struct nvml_attributes *attributes) {
    CALL_INSTANCE(attributes);
    *attributes = (struct nvml_attributes){
        .sms = model->sms,
        .copy_engines = model->mig_slices,
        .decoders = model->mig_slices / 2,
        .gpu_slices = model->mig_slices,
        .compute_slices = model->mig_slices,
        .memory_mib = model->memory / SIM_MIB,
    };
    return NVML_OK;
}
NVML(nvmlDeviceGetAttributes_v2, nvmlDevice device, struct nvml_attributes *attributes) {
    return attributes_of(device, attributes);
}
NVML(nvmlDeviceGetAttributes, nvmlDevice device, struct nvml_attributes *attributes) {
    return attributes_of(device, attributes);
}
