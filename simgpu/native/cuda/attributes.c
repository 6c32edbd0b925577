/* Device attributes: cuDeviceGetAttribute and its older forms. */
#include "driver.h"

/* Values that depend on the compute capability, from NVIDIA's published tables. */
struct generation {
    u32 from;                    /* 10 * major + minor; also for later ones */
    int blocks_per_sm, shared_per_sm, shared_per_block, l2_bytes, copy_engines;
};

static const struct generation generations[] = {
    {120, 24, 100 << 10, 99 << 10, 96 << 20, 2}, {100, 32, 228 << 10, 227 << 10, 126 << 20, 4},
    {90, 32, 228 << 10, 227 << 10, 50 << 20, 3}, {89, 24, 100 << 10, 99 << 10, 72 << 20, 2},
    {86, 16, 100 << 10, 99 << 10, 6 << 20, 2},   {80, 32, 164 << 10, 163 << 10, 40 << 20, 3},
    {75, 16, 64 << 10, 64 << 10, 4 << 20, 3},    {0, 32, 96 << 10, 96 << 10, 6 << 20, 2},
};

static const struct generation *generation_of(const struct sim_model *model) {
    const struct generation *each = generations;
    while (each->from > 10 * model->cc_major + model->cc_minor) each++;
    return each;
}

enum { OWN = -1 };  /* differs between devices */

static const int values[162] = {
#define ATTRIBUTE(number, value) [number] = value,
#include "attributes.def"
};

static int is_at_least(const struct sim_model *model, u32 major) { return model->cc_major >= major; }

static int own_value(const struct sim_model *model, int attribute) {
    const struct generation *generation = generation_of(model);
    switch (attribute) {
    case 13: return (int)model->sm_clock_mhz * 1000;
    case 16: return (int)model->sms;
    case 32: return (int)model->ecc;
    case 33: return (int)model->bus;
    case 34: return (int)model->device;
    case 36: return (int)model->memory_clock_mhz * 1000;
    case 37: return (int)model->bus_width_bits;
    case 38: return generation->l2_bytes;
    case 39: return (int)model->threads_per_sm;
    case 40: return generation->copy_engines;
    case 50: return (int)model->domain;
    case 75: return (int)model->cc_major;
    case 76: return (int)model->cc_minor;
    case 81: return generation->shared_per_sm;
    case 97: return generation->shared_per_block;
    case 106: return generation->blocks_per_sm;
    case 108: return is_at_least(model, 8) ? generation->l2_bytes / 8 * 5 : 0;
    case 120:
    case 127: return is_at_least(model, 9);
    case 126: return is_at_least(model, 9) ? 4 : 1;
    case 134: return model->numa;
    case 139: return (int)model->pci_device_id;
    case 140: return (int)model->pci_subsystem_id;
    default: return 0;
    }
}

CALL(cuDeviceGetAttribute, int *value, int attribute, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!value || attribute < 1 || attribute >= (int)(sizeof values / sizeof *values)) return CUDA_ERROR_INVALID_VALUE;
    *value = values[attribute] == OWN ? own_value(&device->about->model, attribute) : values[attribute];
    return CUDA_SUCCESS;
}
