/* What a card is called and made of. */
#define _GNU_SOURCE
#include "library.h"

#include <stdio.h>

NVML(nvmlDeviceGetName, nvmlDevice device, char *name, u32 length) {
    CALL_ANY;
    return give_text(model_of(call.session, card)->name, name, length);
}

NVML(nvmlDeviceGetUUID, nvmlDevice device, char *uuid, u32 length) {
    CALL_ANY;
    return give_text(model_of(call.session, card)->uuid, uuid, length);
}

NVML(nvmlDeviceGetSerial, nvmlDevice device, char *serial, u32 length) {
    CALL_CARD_OUT(serial);
    return model->serial[0] != 0 ? give_text(model->serial, serial, length) : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetBoardPartNumber, nvmlDevice device, char *number, u32 length) {
    CALL_CARD_OUT(number);
    return model->board[0] != 0 ? give_text(model->board, number, length) : NVML_NOT_SUPPORTED;
}

/* No card of ours has firmware; what a card reports here has the architecture's usual beginning. */
NVML(nvmlDeviceGetVbiosVersion, nvmlDevice device, char *version, u32 length) {
    CALL_CARD_OUT(version);
    static const char *const families[] = {
        [NVML_TURING] = "90.04", [NVML_AMPERE] = "92.00", [NVML_ADA] = "95.04", [NVML_HOPPER] = "96.00"};
    const u32 known = sizeof(families) / sizeof(*families);
    const char *family = model->architecture < known ? families[model->architecture] : NULL;
    char text[32];
    snprintf(text, sizeof(text), "%s.00.00.01", family != NULL ? family : "97.00");
    return give_text(text, version, length);
}

enum { BRAND_QUADRO = 1, BRAND_TESLA = 2, BRAND_GEFORCE = 5, BRAND_NVIDIA_RTX = 13, BRAND_NVIDIA = 14 };

NVML(nvmlDeviceGetBrand, nvmlDevice device, u32 *brand) {
    CALL_CARD_OUT(brand);
    const bool rtx = strstr(model->name, "RTX") != NULL;
    *brand = is_geforce(model)                       ? BRAND_GEFORCE
             : strstr(model->name, "Quadro") != NULL ? BRAND_QUADRO
             : strncmp(model->name, "Tesla", 5) == 0 ? BRAND_TESLA
             : rtx                                   ? BRAND_NVIDIA_RTX
                                                     : BRAND_NVIDIA;
    return NVML_OK;
}

NVML(nvmlDeviceGetMinorNumber, nvmlDevice device, u32 *minor) {
    CALL_CARD_OUT(minor);
    *minor = model->minor;
    return NVML_OK;
}

NVML(nvmlDeviceGetModuleId, nvmlDevice device, u32 *module) {
    CALL_CARD_OUT(module);
    *module = model->minor + 1;
    return NVML_OK;
}

NVML(nvmlDeviceGetBoardId, nvmlDevice device, u32 *board) {
    CALL_CARD_OUT(board);
    *board = model->domain << 16 | model->bus << 8 | model->device;
    return NVML_OK;
}

NVML(nvmlDeviceGetMultiGpuBoard, nvmlDevice device, u32 *several) {
    CALL_CARD_OUT(several);
    *several = 0;
    return NVML_OK;
}

NVML(nvmlDeviceGetArchitecture, nvmlDevice device, u32 *architecture) {
    CALL_ANY;
    NEEDS(architecture != NULL);
    *architecture = model_of(call.session, card)->architecture;
    return NVML_OK;
}

NVML(nvmlDeviceGetCudaComputeCapability, nvmlDevice device, int *major, int *minor) {
    CALL_ANY;
    NEEDS(major != NULL && minor != NULL);
    *major = (int)model_of(call.session, card)->cc_major;
    *minor = (int)model_of(call.session, card)->cc_minor;
    return NVML_OK;
}

/* Arithmetic cores of a multiprocessor: 64 in Volta, Turing and the A100, 128 in all others of today. */
NVML(nvmlDeviceGetNumGpuCores, nvmlDevice device, u32 *cores) {
    CALL_CARD_OUT(cores);
    const u32 capability = model->cc_major * 10 + model->cc_minor;
    *cores = model->sms * (capability >= 70 && capability <= 80 ? 64 : 128);
    return NVML_OK;
}

NVML(nvmlDeviceGetMemoryBusWidth, nvmlDevice device, u32 *bits) {
    CALL_CARD_OUT(bits);
    *bits = model->bus_width_bits;
    return NVML_OK;
}

NVML(nvmlDeviceGetIrqNum, nvmlDevice device, u32 *number) {
    CALL_CARD_OUT(number);
    *number = 128 + model->minor;
    return NVML_OK;
}

NVML(nvmlDeviceGetGspFirmwareVersion, nvmlDevice device, char *version) {
    CALL_CARD_OUT(version);
    if (model->architecture < NVML_TURING) return NVML_NOT_SUPPORTED;
    return give_text(call.session->file->driver, version, sizeof(call.session->file->driver));
}

NVML(nvmlDeviceGetGspFirmwareMode, nvmlDevice device, u32 *enabled, u32 *by_default) {
    CALL_CARD;
    NEEDS(enabled != NULL && by_default != NULL);
    *enabled = *by_default = model->architecture >= NVML_TURING;
    return NVML_OK;
}
