/* Power, energy, temperature and fans: a straight line from idle to the limit, by how busy the card is. */
#include "library.h"

u32 power_mw(const struct session *session, u32 card) {
    const struct sim_model *model = model_of(session, card);
    const u64 range = model->power_limit_mw > model->power_idle_mw ? model->power_limit_mw - model->power_idle_mw : 0;
    return model->power_idle_mw + (u32)(range * use_of(session, card).busy_milli / 1000);
}

/* Since the machine began: idle all the time, and more while busy. */
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
NVML(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDevice device, u32 *mw) { return limit_of(device, mw); }
NVML(nvmlDeviceGetEnforcedPowerLimit, nvmlDevice device, u32 *mw) { return limit_of(device, mw); }

static u32 least_limit(const struct sim_model *model) { return model->power_limit_mw / 3; }

NVML(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice device, u32 *least, u32 *most) {
    CALL_CARD_OUT(least);
    NEEDS(most != NULL);
    *least = least_limit(model);
    *most = model->power_limit_mw;
    return NVML_OK;
}

NVML(nvmlDeviceSetPowerManagementLimit, nvmlDevice device, u32 mw) {
    CALL_CARD;
    NEEDS(mw >= least_limit(model) && mw <= model->power_limit_mw);
    TRY(check_root());
    return mw == model->power_limit_mw ? NVML_OK : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetPowerManagementMode, nvmlDevice device, u32 *mode) {
    CALL_CARD_OUT(mode);
    *mode = NVML_ON;
    return NVML_OK;
}

NVML(nvmlDeviceGetPowerSource, nvmlDevice device, u32 *source) {
    CALL_CARD_OUT(source);
    *source = 0; /* the mains */
    return NVML_OK;
}

/* ---- Temperature: constant --------------------------------------------------------------------------------------- */

enum { AT_SHUTDOWN, AT_SLOWDOWN, AT_MEMORY_MAX, AT_GPU_MAX, THRESHOLDS = 8 };
enum { CONTROLLER_INTERNAL = 1, TARGET_GPU = 1, ALL_SENSORS = 15 };

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

NVML(nvmlDeviceGetTemperatureV, nvmlDevice device, struct nvml_temperature *temperature) {
    CALL_CARD_OUT(temperature);
    TRY(check_version(temperature->version, NVML_VERSION_OF(struct nvml_temperature, 1)));
    NEEDS(temperature->sensor == 0);
    temperature->celsius = (int32_t)model->temperature_c;
    return NVML_OK;
}

NVML(nvmlDeviceGetTemperatureThreshold, nvmlDevice device, u32 kind, u32 *celsius) {
    CALL_CARD_OUT(celsius);
    NEEDS(kind < THRESHOLDS);
    return threshold_of(model, kind, celsius) ? NVML_OK : NVML_NOT_SUPPORTED;
}

/* How much warmer it may become before it slows down. */
NVML(nvmlDeviceGetMarginTemperature, nvmlDevice device, struct nvml_margin *margin) {
    CALL_CARD_OUT(margin);
    TRY(check_version(margin->version, NVML_VERSION_OF(struct nvml_margin, 1)));
    u32 most;
    if (!threshold_of(model, AT_GPU_MAX, &most)) return NVML_NOT_SUPPORTED;
    margin->celsius = (int32_t)most - (int32_t)model->temperature_c;
    return NVML_OK;
}

NVML(nvmlDeviceGetThermalSettings, nvmlDevice device, u32 sensor, struct nvml_thermal *settings) {
    CALL_CARD_OUT(settings);
    NEEDS(sensor == 0 || sensor == ALL_SENSORS);
    *settings = (struct nvml_thermal){.count = 1};
    settings->sensor[0].controller = CONTROLLER_INTERNAL;
    settings->sensor[0].lowest = -40;
    settings->sensor[0].highest = 127;
    settings->sensor[0].celsius = (int32_t)model->temperature_c;
    settings->sensor[0].target = TARGET_GPU;
    return NVML_OK;
}

/* ---- Fans: only consumer cards have any; the others are cooled by their machine ---------------------------------- */

enum { FANS = 2, FAN_PERCENT = 30, FAN_RPM = 1000, FAN_BY_TEMPERATURE = 0 };

#define CALL_FAN(pointer)                                                                                              \
    CALL_CARD_OUT(pointer);                                                                                            \
    if (!is_geforce(model)) return NVML_NOT_SUPPORTED

NVML(nvmlDeviceGetNumFans, nvmlDevice device, u32 *fans) {
    CALL_CARD_OUT(fans);
    *fans = is_geforce(model) ? FANS : 0;
    return NVML_OK;
}

NVML(nvmlDeviceGetFanSpeed, nvmlDevice device, u32 *percent) {
    CALL_FAN(percent);
    *percent = FAN_PERCENT;
    return NVML_OK;
}

static nvml_result speed_of(nvmlDevice device, u32 fan, u32 *percent) {
    CALL_FAN(percent);
    NEEDS(fan < FANS);
    *percent = FAN_PERCENT;
    return NVML_OK;
}
NVML(nvmlDeviceGetFanSpeed_v2, nvmlDevice device, u32 fan, u32 *percent) { return speed_of(device, fan, percent); }
NVML(nvmlDeviceGetTargetFanSpeed, nvmlDevice device, u32 fan, u32 *percent) { return speed_of(device, fan, percent); }

NVML(nvmlDeviceGetFanSpeedRPM, nvmlDevice device, struct nvml_fan_speed *speed) {
    CALL_FAN(speed);
    TRY(check_version(speed->version, NVML_VERSION_OF(struct nvml_fan_speed, 1)));
    NEEDS(speed->fan < FANS);
    speed->rpm = FAN_RPM;
    return NVML_OK;
}

NVML(nvmlDeviceGetMinMaxFanSpeed, nvmlDevice device, u32 *least, u32 *most) {
    CALL_FAN(least);
    NEEDS(most != NULL);
    *least = FAN_PERCENT;
    *most = 100;
    return NVML_OK;
}

NVML(nvmlDeviceGetFanControlPolicy_v2, nvmlDevice device, u32 fan, u32 *policy) {
    CALL_FAN(policy);
    NEEDS(fan < FANS);
    *policy = FAN_BY_TEMPERATURE;
    return NVML_OK;
}
