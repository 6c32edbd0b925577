/* Modes that a card can be in. It is in the one that servers have; to change it is refused. */
#include "library.h"

#define CONSTANT(name, value_now)                                                                                      \
    NVML(name, nvmlDevice device, u32 *value) {                                                                        \
        CALL_CARD_OUT(value);                                                                                          \
        *value = value_now;                                                                                            \
        return NVML_OK;                                                                                                \
    }

enum { COMPUTE_DEFAULT = 0, COMPUTE_MODES = 4, VIRTUALIZATION_NONE = 0, RECORDED_PROCESSES = 4000 };

CONSTANT(nvmlDeviceGetPersistenceMode, NVML_ON)
CONSTANT(nvmlDeviceGetComputeMode, COMPUTE_DEFAULT)
CONSTANT(nvmlDeviceGetDisplayMode, NVML_OFF)
CONSTANT(nvmlDeviceGetDisplayActive, NVML_OFF)
CONSTANT(nvmlDeviceGetVirtualizationMode, VIRTUALIZATION_NONE)
CONSTANT(nvmlDeviceGetAccountingMode, NVML_OFF)
CONSTANT(nvmlDeviceGetAccountingBufferSize, RECORDED_PROCESSES)

/* Root may set what is so already. */
static nvml_result keep(nvmlDevice device, u32 wanted, u32 now, u32 values) {
    CALL_CARD;
    NEEDS(wanted < values);
    TRY(check_root());
    return wanted == now ? NVML_OK : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceSetPersistenceMode, nvmlDevice device, u32 mode) { return keep(device, mode, NVML_ON, 2); }
NVML(nvmlDeviceSetComputeMode, nvmlDevice device, u32 mode) {
    return keep(device, mode, COMPUTE_DEFAULT, COMPUTE_MODES);
}
NVML(nvmlDeviceSetAccountingMode, nvmlDevice device, u32 mode) { return keep(device, mode, NVML_OFF, 2); }

NVML(nvmlDeviceGetAPIRestriction, nvmlDevice device, u32 kind, u32 *restricted) {
    CALL_CARD_OUT(restricted);
    NEEDS(kind < 2);
    *restricted = NVML_ON;
    return NVML_OK;
}

/* ---- Video: nobody encodes or captures --------------------------------------------------------------------------- */

enum { CODECS = 3, CAPACITY_PERCENT = 100 };

NVML(nvmlDeviceGetEncoderCapacity, nvmlDevice device, u32 codec, u32 *percent) {
    CALL_CARD_OUT(percent);
    NEEDS(codec < CODECS);
    *percent = CAPACITY_PERCENT;
    return NVML_OK;
}

NVML(nvmlDeviceGetEncoderStats, nvmlDevice device, u32 *sessions, u32 *frames_per_s, u32 *latency_us) {
    CALL_CARD_OUT(sessions);
    NEEDS(frames_per_s != NULL && latency_us != NULL);
    *sessions = *frames_per_s = *latency_us = 0;
    return NVML_OK;
}

static nvml_result no_sessions(nvmlDevice device, u32 *room, const void *sessions) {
    CALL_CARD_OUT(room);
    return give_count(0, room, sessions);
}
NVML(nvmlDeviceGetEncoderSessions, nvmlDevice device, u32 *room, void *list) { return no_sessions(device, room, list); }
NVML(nvmlDeviceGetFBCSessions, nvmlDevice device, u32 *room, void *list) { return no_sessions(device, room, list); }

NVML(nvmlDeviceGetFBCStats, nvmlDevice device, struct nvml_buffer_sessions *stats) {
    CALL_CARD_OUT(stats);
    *stats = (struct nvml_buffer_sessions){0};
    return NVML_OK;
}
