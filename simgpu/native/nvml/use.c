/* Utilization of a card, total and per process: from the samples that simgpud takes while any client is connected. */
#include "library.h"

#define LATELY_NS SIM_NS_PER_S     /* real cards average over 1/6 to 1 s */
#define PERIOD_US 100000           /* between two samples */

/* A sample that is overwritten while it is copied would be torn, so those at the end of the ring are omitted. */
static u32 copy_samples(const struct sim_card *card, struct sim_sample samples[SIM_SAMPLES]) {
    const u64 taken = atomic_load(&card->samples);
    const u64 first = taken > SIM_SAMPLES - 1 ? taken - (SIM_SAMPLES - 1) : 0;
    for (u64 n = first; n < taken; n++) samples[n - first] = card->sample[n % SIM_SAMPLES];
    atomic_thread_fence(memory_order_acquire);
    const u64 since = atomic_load(&card->samples);
    const u64 valid = since > SIM_SAMPLES - 1 ? since - (SIM_SAMPLES - 1) : 0;
    const u64 torn = valid > first ? valid - first : 0;
    if (torn >= taken - first) return 0;
    for (u64 n = torn; n < taken - first; n++) samples[n - torn] = samples[n];
    return (u32)(taken - first - torn);
}

/* One moment has the same timestamp in every call of a session, so that "since the last one" is exact. */
static u64 wall_us(const struct session *session, u64 wall_ns) { return (wall_ns + (u64)session->epoch_ns) / 1000; }

u32 samples_since(const struct session *session, u32 card, u64 since_us, struct sim_sample samples[SIM_SAMPLES]) {
    const u32 count = copy_samples(&session->file->card[card], samples);
    u32 kept = 0;
    for (u32 i = 0; i < count; i++) {
        samples[i].wall = wall_us(session, samples[i].wall);
        if (samples[i].wall > since_us) samples[kept++] = samples[i];
    }
    return kept;
}

struct use use_of(const struct session *session, u32 card) {
    struct sim_sample samples[SIM_SAMPLES];
    const u64 since = wall_us(session, sim_now() - LATELY_NS);
    const u32 count = samples_since(session, card, since, samples);
    u64 busy = 0, memory = 0;
    for (u32 i = 0; i < count; i++) busy += samples[i].busy_milli, memory += samples[i].memory_milli;
    if (count == 0) return (struct use){0};
    return (struct use){(u32)(busy / count), (u32)(memory / count)};
}

static u32 percent(u64 milli) { return milli > 1000 ? 100 : (u32)(milli + 5) / 10; }

/* ---- Per card ---------------------------------------------------------------------------------------------------- */

/* Not available for cards in MIG mode. */
NVML(nvmlDeviceGetUtilizationRates, nvmlDevice device, struct nvml_utilization *utilization) {
    CALL_CARD_OUT(utilization);
    if (model->mig_enabled) return NVML_NOT_SUPPORTED;
    const struct use use = use_of(call.session, card);
    *utilization = (struct nvml_utilization){percent(use.busy_milli), percent(use.memory_milli)};
    return NVML_OK;
}

/* Video engines are always idle. */
static nvml_result idle_engine(nvmlDevice device, u32 *utilization, u32 *period_us) {
    CALL_CARD;
    NEEDS(utilization != NULL && period_us != NULL);
    if (model->mig_enabled) return NVML_NOT_SUPPORTED;
    *utilization = 0;
    *period_us = PERIOD_US;
    return NVML_OK;
}

#define IDLE_ENGINE(name)                                                                                              \
    NVML(name, nvmlDevice device, u32 *utilization, u32 *period_us) {                                                  \
        return idle_engine(device, utilization, period_us);                                                            \
    }

IDLE_ENGINE(nvmlDeviceGetEncoderUtilization)
IDLE_ENGINE(nvmlDeviceGetDecoderUtilization)

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

enum { SAMPLE_POWER, SAMPLE_GPU, SAMPLE_MEMORY, SAMPLE_ENCODER, SAMPLE_DECODER, SAMPLE_SM_CLOCK, SAMPLE_MEMORY_CLOCK };

static nvml_result sampled(const struct sim_model *model, u32 kind, const struct sim_sample *sample, u32 *value) {
    switch (kind) {
    case SAMPLE_POWER:
        *value = model->power_idle_mw + (model->power_limit_mw - model->power_idle_mw) / 1000 * sample->busy_milli;
        return NVML_OK;
    case SAMPLE_GPU: *value = percent(sample->busy_milli); return NVML_OK;
    case SAMPLE_MEMORY: *value = percent(sample->memory_milli); return NVML_OK;
    case SAMPLE_ENCODER:
    case SAMPLE_DECODER: *value = 0; return NVML_OK;
    case SAMPLE_SM_CLOCK: *value = model->sm_clock_mhz; return NVML_OK;
    case SAMPLE_MEMORY_CLOCK: *value = model->memory_clock_mhz; return NVML_OK;
    default: return NVML_NOT_SUPPORTED;
    }
}

NVML(nvmlDeviceGetSamples, nvmlDevice device, u32 kind, u64 since_us, u32 *type, u32 *room, struct nvml_sample *list) {
    CALL_CARD;
    NEEDS(type != NULL && room != NULL && (list == NULL || *room > 0));
    if (model->mig_enabled) return NVML_NOT_SUPPORTED;
    struct sim_sample samples[SIM_SAMPLES] = {0};
    u32 ignored;
    TRY(sampled(model, kind, &samples[0], &ignored));
    *type = NVML_VALUE_U32;
    if (list == NULL) {
        *room = SIM_SAMPLES;
        return NVML_OK;
    }
    const u32 count = samples_since(call.session, card, since_us, samples);
    const u32 most = *room < count ? *room : count;
    if (count == 0) return NVML_NOT_FOUND;
    *room = most;
    for (u32 i = 0; i < most; i++) {
        list[i] = (struct nvml_sample){.wall_us = samples[i].wall};
        TRY(sampled(model, kind, &samples[i], &list[i].value.u32));
    }
    return NVML_OK;
}

/* ---- By process -------------------------------------------------------------------------------------------------- */

struct uses {
    u32 count;
    struct nvml_process_use_v1 use[SIM_ROWS];
};

/* The processes that the caller may see and that ran at all during the samples, each with its mean utilization. */
static nvml_result find_uses(const struct session *session, u32 card, u64 since_us, struct uses *uses) {
    struct sim_sample samples[SIM_SAMPLES];
    struct sim_process list[SIM_ROWS];
    const int processes = sim_processes_of(session->node, card, list, SIM_ROWS);
    if (processes < 0) return NVML_UNKNOWN;
    const u32 count = samples_since(session, card, since_us, samples);
    uses->count = 0;
    for (int i = 0; i < processes; i++) {
        struct nvml_process_use_v1 use = {.pid = list[i].pid};
        u64 busy = 0;
        for (u32 n = 0; n < count; n++)
            if (samples[n].row_busy_milli[list[i].row % SIM_ROWS] > 0) {
                busy += samples[n].row_busy_milli[list[i].row % SIM_ROWS];
                use.wall_us = samples[n].wall;
            }
        if (busy == 0 || use.pid == 0) continue;
        use.sm = percent(busy / count);
        uses->use[uses->count++] = use;
    }
    return uses->count > 0 ? NVML_OK : NVML_NOT_FOUND;
}

NVML(nvmlDeviceGetProcessUtilization, nvmlDevice device, struct nvml_process_use *list, u32 *room, u64 since_us) {
    CALL_CARD;
    NEEDS(room != NULL);
    if (model->mig_enabled) return NVML_NOT_SUPPORTED;
    if (list == NULL) {
        *room = SIM_ROWS;
        return NVML_INSUFFICIENT_SIZE;
    }
    struct uses uses;
    TRY(find_uses(call.session, card, since_us, &uses));
    TRY(give_count(uses.count, room, list));
    for (u32 i = 0; i < uses.count; i++)
        list[i] =
            (struct nvml_process_use){.pid = uses.use[i].pid, .wall_us = uses.use[i].wall_us, .sm = uses.use[i].sm};
    return NVML_OK;
}

NVML(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice device, struct nvml_process_uses *list) {
    CALL_CARD_OUT(list);
    TRY(check_version(list->version, NVML_VERSION_OF(struct nvml_process_uses, 1)));
    if (model->mig_enabled) return NVML_NOT_SUPPORTED;
    if (list->uses == NULL) {
        list->count = SIM_ROWS;
        return NVML_INSUFFICIENT_SIZE;
    }
    struct uses uses;
    TRY(find_uses(call.session, card, list->since_us, &uses));
    TRY(give_count(uses.count, &list->count, list->uses));
    for (u32 i = 0; i < uses.count; i++) list->uses[i] = uses.use[i];
    return NVML_OK;
}
