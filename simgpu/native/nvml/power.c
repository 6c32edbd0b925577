/* Power and clocks, derived from utilization; temperature and fans. */
#include "library.h"

u32 power_mw(const struct session *session, u32 card) {
    const struct sim_model *model = model_of(session, card);
    const u64 range = model->power_limit_mw > model->power_idle_mw ? model->power_limit_mw - model->power_idle_mw : 0;
    return model->power_idle_mw + (u32)(range * use_of(session, card).busy_milli / 1000);
}

/* Since boot: idle power all the time, plus more while busy. */
u64 energy_mj(const struct session *session, u32 card) {
    const struct sim_model *model = model_of(session, card);
    const u64 busy_us = atomic_load(&session->file->card[card].live.busy_ns) / 1000;
    const u64 range = model->power_limit_mw > model->power_idle_mw ? model->power_limit_mw - model->power_idle_mw : 0;
    return (sim_now() / 1000 * model->power_idle_mw + busy_us * range) / 1000000;
}

NVML(nvmlDeviceGetPowerUsage, nvmlDevice device, u32 *mw) {
    CALL_CARD_OUT(mw);
    *mw = power_mw(call.session, card);
    return NVML_OK;
}

NVML(nvmlDeviceGetTotalEnergyConsumption, nvmlDevice device, u64 *mj) {
    CALL_CARD_OUT(mj);
    *mj = energy_mj(call.session, card);
    return NVML_OK;
}

static nvml_result limit_of(nvmlDevice device, u32 *mw) {
    CALL_CARD_OUT(mw);
    *mw = model->power_limit_mw;
    return NVML_OK;
}
NVML(nvmlDeviceGetPowerManagementLimit, nvmlDevice device, u32 *mw) { return limit_of(device, mw); }
NVML(nvmlDeviceGetEnforcedPowerLimit, nvmlDevice device, u32 *mw) { return limit_of(device, mw); }

NVML(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice device, u32 *least, u32 *most) {
    CALL_CARD_OUT(least);
    NEEDS(most != NULL);
    *least = model->power_limit_mw / 3;
    *most = model->power_limit_mw;
    return NVML_OK;
}

/* ---- Temperature: constant --------------------------------------------------------------------------------------- */

enum { AT_SHUTDOWN, AT_SLOWDOWN, AT_MEMORY_MAX, AT_GPU_MAX, THRESHOLDS = 8 };

bool threshold_of(const struct sim_model *model, u32 kind, u32 *celsius) {
    static const u32 usual[] = {[AT_SHUTDOWN] = 95, [AT_SLOWDOWN] = 92, [AT_MEMORY_MAX] = 95, [AT_GPU_MAX] = 87};
    if (kind >= sizeof(usual) / sizeof(*usual) || (kind == AT_MEMORY_MAX && is_geforce(model))) return false;
    *celsius = usual[kind];
    return true;
}

NVML(nvmlDeviceGetTemperature, nvmlDevice device, u32 sensor, u32 *celsius) {
    CALL_CARD_OUT(celsius);
    NEEDS(sensor == 0);
    *celsius = model->temperature_c;
    return NVML_OK;
}

NVML(nvmlDeviceGetTemperatureThreshold, nvmlDevice device, u32 kind, u32 *celsius) {
    CALL_CARD_OUT(celsius);
    NEEDS(kind < THRESHOLDS);
    return threshold_of(model, kind, celsius) ? NVML_OK : NVML_NOT_SUPPORTED;
}

/* ---- Fans: only consumer cards have any; the others are cooled by their machine ---------------------------------- */

enum { FANS = 2 };

NVML(nvmlDeviceGetNumFans, nvmlDevice device, u32 *fans) {
    CALL_CARD_OUT(fans);
    *fans = is_geforce(model) ? FANS : 0;
    return NVML_OK;
}

/* ---- Clocks: full speed while the card works, slow when it is idle ----------------------------------------------- */

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCKS };
enum { IDLE_MHZ = 345 };

static u32 greatest_clock(const struct sim_model *model, u32 kind) {
    if (kind == CLOCK_MEMORY) return model->memory_clock_mhz;
    return kind == CLOCK_VIDEO ? model->sm_clock_mhz / 10 * 9 : model->sm_clock_mhz;
}

static bool is_idle(const struct session *session, u32 card) { return use_of(session, card).busy_milli == 0; }

NVML(nvmlDeviceGetClockInfo, nvmlDevice device, u32 kind, u32 *mhz) {
    CALL_CARD_OUT(mhz);
    NEEDS(kind < CLOCKS);
    const u32 greatest = greatest_clock(model, kind);
    *mhz = kind != CLOCK_MEMORY && greatest > IDLE_MHZ && is_idle(call.session, card) ? IDLE_MHZ : greatest;
    return NVML_OK;
}

NVML(nvmlDeviceGetMaxClockInfo, nvmlDevice device, u32 kind, u32 *mhz) {
    CALL_CARD_OUT(mhz);
    NEEDS(kind < CLOCKS);
    *mhz = greatest_clock(model, kind);
    return NVML_OK;
}

NVML(nvmlDeviceGetSupportedMemoryClocks, nvmlDevice device, u32 *room, u32 *mhz) {
    CALL_CARD_OUT(room);
    TRY(give_count(1, room, mhz));
    mhz[0] = model->memory_clock_mhz;
    return NVML_OK;
}

/* P0, or P8 for idle consumer cards. */
NVML(nvmlDeviceGetPerformanceState, nvmlDevice device, u32 *state) {
    CALL_CARD_OUT(state);
    *state = is_geforce(model) && is_idle(call.session, card) ? 8 : 0;
    return NVML_OK;
}

enum { REASONS = 0x1ff };

NVML(nvmlDeviceGetSupportedClocksEventReasons, nvmlDevice device, u64 *reasons) {
    CALL_CARD_OUT(reasons);
    *reasons = REASONS;
    return NVML_OK;
}
