/* Clocks and performance states: full speed while the card works, slow when it is idle. */
#include "library.h"

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCKS };
enum { CLOCK_CURRENT, CLOCK_APPLICATION, CLOCK_APPLICATION_DEFAULT, CLOCK_BOOST_MAX, CLOCK_MEANINGS };
enum { IDLE_MHZ = 345, STEP_MHZ = 15, STATE_UNKNOWN = 32, STATE_ROOM = 16 };
enum { REASON_IDLE = 1, REASONS = 0x1ff };

static u32 greatest_clock(const struct sim_model *model, u32 kind) {
    if (kind == CLOCK_MEMORY) return model->memory_clock_mhz;
    return kind == CLOCK_VIDEO ? model->sm_clock_mhz / 10 * 9 : model->sm_clock_mhz;
}

static bool is_idle(const struct session *session, u32 card) { return use_of(session, card).busy_milli == 0; }

static u32 clock_now(const struct session *session, u32 card, u32 kind) {
    const u32 greatest = greatest_clock(model_of(session, card), kind);
    return kind != CLOCK_MEMORY && greatest > IDLE_MHZ && is_idle(session, card) ? IDLE_MHZ : greatest;
}

NVML(nvmlDeviceGetClockInfo, nvmlDevice device, u32 kind, u32 *mhz) {
    CALL_CARD_OUT(mhz);
    NEEDS(kind < CLOCKS);
    *mhz = clock_now(call.session, card, kind);
    return NVML_OK;
}

static nvml_result max_clock(nvmlDevice device, u32 kind, u32 *mhz) {
    CALL_CARD_OUT(mhz);
    NEEDS(kind < CLOCKS);
    *mhz = greatest_clock(model, kind);
    return NVML_OK;
}
NVML(nvmlDeviceGetMaxClockInfo, nvmlDevice device, u32 kind, u32 *mhz) { return max_clock(device, kind, mhz); }

/* Consumer cards have no application clocks. */
static nvml_result application_clock(nvmlDevice device, u32 kind, u32 *mhz) {
    CALL_CARD_OUT(mhz);
    NEEDS(kind < CLOCKS);
    if (is_geforce(model) || kind == CLOCK_VIDEO) return NVML_NOT_SUPPORTED;
    *mhz = greatest_clock(model, kind);
    return NVML_OK;
}
NVML(nvmlDeviceGetApplicationsClock, nvmlDevice device, u32 kind, u32 *mhz) {
    return application_clock(device, kind, mhz);
}
NVML(nvmlDeviceGetDefaultApplicationsClock, nvmlDevice device, u32 kind, u32 *mhz) {
    return application_clock(device, kind, mhz);
}
NVML(nvmlDeviceGetMaxCustomerBoostClock, nvmlDevice device, u32 kind, u32 *mhz) {
    return application_clock(device, kind, mhz);
}

NVML(nvmlDeviceGetClock, nvmlDevice device, u32 kind, u32 meaning, u32 *mhz) {
    NEEDS(meaning < CLOCK_MEANINGS);
    return meaning == CLOCK_CURRENT ? nvmlDeviceGetClockInfo(device, kind, mhz) : application_clock(device, kind, mhz);
}

NVML(nvmlDeviceGetSupportedMemoryClocks, nvmlDevice device, u32 *room, u32 *mhz) {
    CALL_CARD_OUT(room);
    TRY(give_count(1, room, mhz));
    mhz[0] = model->memory_clock_mhz;
    return NVML_OK;
}

/* From the greatest down to idle. */
NVML(nvmlDeviceGetSupportedGraphicsClocks, nvmlDevice device, u32 memory_mhz, u32 *room, u32 *mhz) {
    CALL_CARD_OUT(room);
    if (memory_mhz != model->memory_clock_mhz) return NVML_NOT_FOUND;
    const u32 most = model->sm_clock_mhz;
    const u32 count = most > IDLE_MHZ ? (most - IDLE_MHZ) / STEP_MHZ + 1 : 1;
    TRY(give_count(count, room, mhz));
    for (u32 i = 0; i < count; i++) mhz[i] = most - i * STEP_MHZ;
    return NVML_OK;
}

/* ---- Performance states: 0, and 8 for idle consumer cards -------------------------------------------------------- */

static u32 state_now(const struct session *session, u32 card) {
    return is_geforce(model_of(session, card)) && is_idle(session, card) ? 8 : 0;
}

static nvml_result performance_state(nvmlDevice device, u32 *state) {
    CALL_CARD_OUT(state);
    *state = state_now(call.session, card);
    return NVML_OK;
}
NVML(nvmlDeviceGetPerformanceState, nvmlDevice device, u32 *state) { return performance_state(device, state); }
NVML(nvmlDeviceGetPowerState, nvmlDevice device, u32 *state) { return performance_state(device, state); }

/* `size` is in bytes. */
NVML(nvmlDeviceGetSupportedPerformanceStates, nvmlDevice device, u32 *states, u32 size) {
    CALL_CARD_OUT(states);
    const u32 room = size / sizeof(*states);
    if (room < STATE_ROOM) return NVML_INSUFFICIENT_SIZE;
    for (u32 i = 0; i < room; i++) states[i] = STATE_UNKNOWN;
    states[0] = 0;
    if (is_geforce(model)) states[1] = 8;
    return NVML_OK;
}

NVML(nvmlDeviceGetMinMaxClockOfPState, nvmlDevice device, u32 kind, u32 state, u32 *least, u32 *most) {
    CALL_CARD_OUT(least);
    NEEDS(most != NULL && kind < CLOCKS);
    if (state != 0) return NVML_NOT_SUPPORTED;
    *most = greatest_clock(model, kind);
    *least = kind == CLOCK_MEMORY || *most < IDLE_MHZ ? *most : IDLE_MHZ;
    return NVML_OK;
}

static nvml_result reasons_now(nvmlDevice device, u64 *reasons) {
    CALL_CARD_OUT(reasons);
    *reasons = is_idle(call.session, card) ? REASON_IDLE : 0;
    return NVML_OK;
}
NVML(nvmlDeviceGetCurrentClocksEventReasons, nvmlDevice device, u64 *reasons) { return reasons_now(device, reasons); }
NVML(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDevice device, u64 *reasons) {
    return reasons_now(device, reasons);
}

static nvml_result reasons_known(nvmlDevice device, u64 *reasons) {
    CALL_CARD_OUT(reasons);
    *reasons = REASONS;
    return NVML_OK;
}
NVML(nvmlDeviceGetSupportedClocksEventReasons, nvmlDevice device, u64 *reasons) {
    return reasons_known(device, reasons);
}
NVML(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDevice device, u64 *reasons) {
    return reasons_known(device, reasons);
}

enum { POLICY_LAST_CAUSE = 5, POLICY_APPLICATION = 10, POLICY_BASE = 11 };

/* For how long something kept the clocks low: never. */
NVML(nvmlDeviceGetViolationStatus, nvmlDevice device, u32 policy, struct nvml_violation *violation) {
    CALL_CARD_OUT(violation);
    NEEDS(policy <= POLICY_LAST_CAUSE || policy == POLICY_APPLICATION || policy == POLICY_BASE);
    *violation = (struct nvml_violation){.reference_ns = sim_now()};
    return NVML_OK;
}

NVML(nvmlDeviceGetAdaptiveClockInfoStatus, nvmlDevice device, u32 *status) {
    CALL_CARD_OUT(status);
    *status = NVML_OFF;
    return NVML_OK;
}
