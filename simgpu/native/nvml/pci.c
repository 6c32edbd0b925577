/* A card's position on the PCI bus, and its speed. */
#define _GNU_SOURCE
#include "library.h"

#include <stdio.h>

enum { LANES = 16 };

void fill_pci(const struct sim_model *model, struct nvml_pci *pci) {
    *pci = (struct nvml_pci){
        .domain = model->domain,
        .bus = model->bus,
        .device = model->device,
        .device_id = model->pci_device_id,
        .subsystem_id = model->pci_subsystem_id,
    };
    const u32 bus = model->bus & 0xff, slot = model->device & 0xff;
    snprintf(pci->legacy_bus_id, sizeof(pci->legacy_bus_id), "%04X:%02X:%02X.0", model->domain & 0xffff, bus, slot);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", model->domain, bus, slot);
}

NVML(nvmlDeviceGetPciInfo_v3, nvmlDevice device, struct nvml_pci *pci) {
    CALL_CARD_OUT(pci);
    fill_pci(model, pci);
    return NVML_OK;
}

/* The first version ends before the subsystem, the second before the long bus ID. */
static nvml_result short_pci_info(nvmlDevice device, void *pci, size_t size) {
    CALL_CARD_OUT(pci);
    struct nvml_pci all;
    fill_pci(model, &all);
    memcpy(pci, &all, size);
    return NVML_OK;
}
NVML(nvmlDeviceGetPciInfo_v2, nvmlDevice device, void *pci) {
    return short_pci_info(device, pci, offsetof(struct nvml_pci, bus_id));
}
NVML(nvmlDeviceGetPciInfo, nvmlDevice device, void *pci) {
    return short_pci_info(device, pci, offsetof(struct nvml_pci, subsystem_id));
}

u32 pcie_generation(const struct sim_model *model) {
    return model->architecture >= NVML_HOPPER ? 5 : model->architecture >= NVML_AMPERE ? 4 : 3;
}

/* Links run at the card's maximum; the slot never limits them. */
static nvml_result generation(nvmlDevice device, u32 *value) {
    CALL_CARD_OUT(value);
    *value = pcie_generation(model);
    return NVML_OK;
}
NVML(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDevice device, u32 *value) { return generation(device, value); }
NVML(nvmlDeviceGetCurrPcieLinkGeneration, nvmlDevice device, u32 *value) { return generation(device, value); }

static nvml_result width(nvmlDevice device, u32 *lanes) {
    CALL_CARD_OUT(lanes);
    *lanes = LANES;
    return NVML_OK;
}
NVML(nvmlDeviceGetMaxPcieLinkWidth, nvmlDevice device, u32 *lanes) { return width(device, lanes); }
NVML(nvmlDeviceGetCurrPcieLinkWidth, nvmlDevice device, u32 *lanes) { return width(device, lanes); }
