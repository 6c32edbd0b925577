/* A card's names and properties, its modes, and its memory errors. */
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

/* Simulated cards have no firmware; the version has the architecture's usual prefix. */
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

/* ---- modes of server cards --------------------------------------------------------------------------------------- */

#define CONSTANT(name, value_now)                                                                                      \
    NVML(name, nvmlDevice device, u32 *value) {                                                                        \
        CALL_CARD_OUT(value);                                                                                          \
        *value = value_now;                                                                                            \
        return NVML_OK;                                                                                                \
    }

enum { COMPUTE_DEFAULT = 0, VIRTUALIZATION_NONE = 0 };

CONSTANT(nvmlDeviceGetPersistenceMode, NVML_ON)
CONSTANT(nvmlDeviceGetComputeMode, COMPUTE_DEFAULT)
CONSTANT(nvmlDeviceGetVirtualizationMode, VIRTUALIZATION_NONE)

/* ---- memory errors ----------------------------------------------------------------------------------------------- */

enum { CORRECTED, UNCORRECTED, ERROR_KINDS };
enum { VOLATILE, AGGREGATE, COUNTERS };

NVML(nvmlDeviceGetEccMode, nvmlDevice device, u32 *current, u32 *pending) {
    CALL_CARD_OUT(current);
    if (!model->ecc) return NVML_NOT_SUPPORTED;
    NEEDS(pending != NULL);
    *current = *pending = NVML_ON;
    return NVML_OK;
}

/* All errors are of device memory, and a card starts with none. */
NVML(nvmlDeviceGetTotalEccErrors, nvmlDevice device, u32 kind, u32 counter, u64 *errors) {
    CALL_CARD_OUT(errors);
    if (!model->ecc) return NVML_NOT_SUPPORTED;
    NEEDS(kind < ERROR_KINDS && counter < COUNTERS);
    *errors = atomic_load(kind == CORRECTED ? &live->ecc_corrected : &live->ecc_uncorrected);
    return NVML_OK;
}
