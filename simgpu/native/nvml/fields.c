/* nvmlDeviceGetFieldValues: values by field number, many in one call. */
#define _GNU_SOURCE
#include "library.h"

struct subject {
    const struct session *session;
    const struct sim_model *model;
    const struct sim_live *live;
    u32 card;
    u32 scope;                     /* link number, or part of the device */
};

/* Reads the current value of a field; NOT_SUPPORTED if the card lacks it. */
typedef nvml_result reader(const struct subject *of, u64 *value);

struct kind {
    u32 first, last;               /* range of field numbers read by this function */
    u32 type;
    reader *read;
};

/* ---- Readers ----------------------------------------------------------------------------------------------------- */

static nvml_result give(bool has, u64 now, u64 *value) {
    *value = now;
    return has ? NVML_OK : NVML_NOT_SUPPORTED;
}

static nvml_result never(const struct subject *of, u64 *value) {
    (void)of;
    return give(true, 0, value);
}
static nvml_result ecc_on(const struct subject *of, u64 *value) { return give(of->model->ecc, NVML_ON, value); }
static nvml_result ecc_none(const struct subject *of, u64 *value) { return give(of->model->ecc, 0, value); }
static nvml_result ecc_corrected(const struct subject *of, u64 *value) {
    return give(of->model->ecc, atomic_load(&of->live->ecc_corrected), value);
}
static nvml_result ecc_uncorrected(const struct subject *of, u64 *value) {
    return give(of->model->ecc, atomic_load(&of->live->ecc_uncorrected), value);
}
static nvml_result pages(const struct subject *of, u64 *value) {
    return give(of->model->ecc && of->model->architecture < NVML_AMPERE, 0, value);
}
static nvml_result rows(const struct subject *of, u64 *value) {
    return give(of->model->ecc && of->model->architecture >= NVML_AMPERE, 0, value);
}

static nvml_result links(const struct subject *of, u64 *value) {
    return give(of->model->nvlinks > 0, of->model->nvlinks, value);
}
static nvml_result link_none(const struct subject *of, u64 *value) { return give(of->model->nvlinks > 0, 0, value); }
static nvml_result link_state(const struct subject *of, u64 *value) {
    return give(of->model->nvlinks > 0, of->scope < of->model->nvlinks, value);
}
/* Speed of one link in Mbit/s as NVML counts: the data rate of one direction in MB/s. */
static nvml_result link_speed(const struct subject *of, u64 *value) {
    static const u32 speeds[] = {0, 20000, 25781, 25000, 26562, 53125};
    const u32 generation = of->model->nvlink_version;
    const bool has = of->model->nvlinks > 0 && generation < sizeof(speeds) / sizeof(*speeds);
    return give(has, has ? speeds[generation] : 0, value);
}
/* Links that do not end at a card of the node end at a switch. */
static nvml_result switched(const struct subject *of, u64 *value) {
    u64 count = 0;
    for (u32 link = 0; link < of->model->nvlinks && link < SIM_LINKS; link++) count += of->model->link_to[link] < 0;
    return give(of->model->nvlinks > 0, count, value);
}

static nvml_result power(const struct subject *of, u64 *value) {
    return give(true, power_mw(of->session, of->card), value);
}
static nvml_result limit(const struct subject *of, u64 *value) { return give(true, of->model->power_limit_mw, value); }
static nvml_result lowest_limit(const struct subject *of, u64 *value) {
    return give(true, of->model->power_limit_mw / 3, value);
}
static nvml_result energy(const struct subject *of, u64 *value) {
    return give(true, energy_mj(of->session, of->card), value);
}
static nvml_result temperature(const struct subject *of, u64 *value) {
    return give(true, of->model->temperature_c, value);
}
/* Only high-bandwidth memory has a sensor: on cards with ECC and a wide bus. */
static nvml_result memory_temperature(const struct subject *of, u64 *value) {
    return give(of->model->ecc && of->model->bus_width_bits >= 1024, of->model->temperature_c, value);
}
static nvml_result capable(const struct subject *of, u64 *value) {
    return give(of->model->mig_capable, of->model->mig_capable, value);
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static const struct kind kinds[] = {
    {1, 2, NVML_VALUE_U32, ecc_on},
    {3, 3, NVML_VALUE_U64, ecc_corrected}, /* volatile totals, then aggregate totals */
    {4, 4, NVML_VALUE_U64, ecc_uncorrected},
    {5, 5, NVML_VALUE_U64, ecc_corrected},
    {6, 6, NVML_VALUE_U64, ecc_uncorrected},
    {7, 10, NVML_VALUE_U64, ecc_none}, /* caches */
    {11, 11, NVML_VALUE_U64, ecc_corrected},
    {12, 12, NVML_VALUE_U64, ecc_uncorrected},
    {13, 21, NVML_VALUE_U64, ecc_none}, /* registers, textures, caches */
    {22, 22, NVML_VALUE_U64, ecc_corrected},
    {23, 23, NVML_VALUE_U64, ecc_uncorrected},
    {24, 28, NVML_VALUE_U64, ecc_none},
    {29, 31, NVML_VALUE_U32, pages},
    {32, 73, NVML_VALUE_U64, link_none}, /* errors and traffic of links 0 to 5 */
    {74, 81, NVML_VALUE_U64, never}, /* time of clock throttling */
    {82, 82, NVML_VALUE_U32, memory_temperature},
    {83, 83, NVML_VALUE_U64, energy},
    {84, 90, NVML_VALUE_U32, link_speed},
    {91, 91, NVML_VALUE_U32, links},
    {92, 93, NVML_VALUE_U32, pages},
    {94, 95, NVML_VALUE_U32, never}, /* PCIe replays */
    {96, 131, NVML_VALUE_U64, link_none}, /* errors and traffic of links 6 to 11 */
    {132, 137, NVML_VALUE_U32, link_speed},
    {138, 141, NVML_VALUE_U64, link_none}, /* throughput */
    {142, 145, NVML_VALUE_U32, rows},
    {147, 147, NVML_VALUE_U32, switched},
    {148, 163, NVML_VALUE_U64, link_none},
    {164, 164, NVML_VALUE_U32, link_speed},
    {165, 165, NVML_VALUE_U32, link_state},
    {169, 169, NVML_VALUE_U32, never},
    {173, 183, NVML_VALUE_U32, never}, /* PCIe errors */
    {185, 186, NVML_VALUE_U32, power},
    {187, 187, NVML_VALUE_U32, lowest_limit},
    {188, 190, NVML_VALUE_U32, limit},
    {191, 191, NVML_VALUE_U64, energy},
    {192, 192, NVML_VALUE_U32, limit},
    {197, 198, NVML_VALUE_U64, never}, /* PCIe bytes: not modelled */
    {199, 199, NVML_VALUE_U32, capable},
    {201, 215, NVML_VALUE_U64, link_none},
    {226, 227, NVML_VALUE_U32, never}, /* needs a reset, needs draining */
    {230, 230, NVML_VALUE_U32, never}, /* recovery action */
    {269, 271, NVML_VALUE_U64, never},
    {301, 302, NVML_VALUE_U32, rows},
    {308, 308, NVML_VALUE_U32, temperature},
};

static const struct kind *kind_of(u32 id) {
    for (u32 i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (id >= kinds[i].first && id <= kinds[i].last) return &kinds[i];
    return NULL;
}

static void fill(struct subject *of, struct nvml_field *field) {
    const u64 began = sim_now();
    const struct kind *kind = kind_of(field->id);
    of->scope = field->scope;
    u64 now = 0;
    field->result = kind != NULL ? kind->read(of, &now) : NVML_NOT_SUPPORTED;
    field->wall_us = (int64_t)(began + (u64)of->session->epoch_ns) / 1000;
    field->latency_us = (int64_t)(sim_now() - began) / 1000;
    if (field->result != NVML_OK) return;
    field->type = kind->type;
    field->value.u64 = 0;
    if (kind->type == NVML_VALUE_U64)
        field->value.u64 = now;
    else
        field->value.u32 = (u32)now;
}

NVML(nvmlDeviceGetFieldValues, nvmlDevice device, int count, struct nvml_field *fields) {
    CALL_CARD_OUT(fields);
    NEEDS(count > 0);
    struct subject of = {.session = call.session, .model = model, .live = live, .card = card};
    for (int i = 0; i < count; i++) fill(&of, &fields[i]);
    return NVML_OK;
}
