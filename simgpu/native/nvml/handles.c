/* Handles, and the functions that return them.
 *
 * A handle is the address of a byte in our table, which is never read or written: its position encodes the driver
 * generation that it was made for and its card. So invalid and stale handles are detected without dereferencing them,
 * and a handle stays valid across nvmlShutdown and nvmlInit.
 */
#define _GNU_SOURCE
#include "library.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

enum { GENERATIONS = 64 };         /* after that many driver restarts, the oldest handles are taken for new ones */

typedef char handle_table[GENERATIONS][SIM_CARDS];
static handle_table devices, gpu_instances, compute_instances;

static void *handle_in(handle_table table, const struct session *session, u32 card) {
    return &table[session->generation % GENERATIONS][card];
}

static bool may_use(const struct session *session, u32 whole) {
    u32 i = 0;
    while (i < session->cards && session->card[i] != whole) i++;
    return i < session->cards;
}

static nvml_result card_in(handle_table table, const struct session *session, const void *handle, u32 *card) {
    const uintptr_t offset = (uintptr_t)handle - (uintptr_t)table;
    NEEDS(offset < sizeof(handle_table));
    if (offset / SIM_CARDS != session->generation % GENERATIONS) return NVML_GPU_IS_LOST;
    *card = (u32)(offset % SIM_CARDS);
    NEEDS(*card < session->file->cards);
    const u32 whole = whole_card(session, *card);
    NEEDS(may_use(session, whole));
    return atomic_load(&session->file->card[whole].live.health) == SIM_HEALTHY ? NVML_OK : NVML_GPU_IS_LOST;
}

nvml_result card_of(const struct session *session, nvmlDevice device, u32 *card) {
    return card_in(devices, session, device, card);
}
nvmlDevice device_of(const struct session *session, u32 card) { return handle_in(devices, session, card); }

nvml_result gpu_instance_of(const struct session *session, nvmlGpuInstance handle, u32 *card) {
    return card_in(gpu_instances, session, handle, card);
}
nvmlGpuInstance gpu_instance_handle(const struct session *session, u32 card) {
    return handle_in(gpu_instances, session, card);
}

nvml_result compute_instance_of(const struct session *session, nvmlComputeInstance handle, u32 *card) {
    return card_in(compute_instances, session, handle, card);
}
nvmlComputeInstance compute_instance_handle(const struct session *session, u32 card) {
    return handle_in(compute_instances, session, card);
}

u32 next_instance(const struct session *session, u32 parent, u32 from) {
    while (from < session->file->cards && model_of(session, from)->parent != (int32_t)parent) from++;
    return from;
}

/* Returns the handle of a card that a search found, or GPU_IS_LOST if it is lost. */
static nvml_result give_device(const struct session *session, u32 card, nvmlDevice *found) {
    const nvmlDevice device = device_of(session, card);
    TRY(card_of(session, device, &card));
    *found = device;
    return NVML_OK;
}

/* ---- By number --------------------------------------------------------------------------------------------------- */

static nvml_result count_cards(u32 *count) {
    CALL;
    NEEDS(count != NULL);
    *count = call.session->cards;
    return NVML_OK;
}
NVML(nvmlDeviceGetCount_v2, u32 *count) { return count_cards(count); }
NVML(nvmlDeviceGetCount, u32 *count) { return count_cards(count); }

static nvml_result by_index(u32 index, nvmlDevice *device) {
    CALL;
    NEEDS(device != NULL && index < call.session->cards);
    return give_device(call.session, call.session->card[index], device);
}
NVML(nvmlDeviceGetHandleByIndex_v2, u32 index, nvmlDevice *device) { return by_index(index, device); }
NVML(nvmlDeviceGetHandleByIndex, u32 index, nvmlDevice *device) { return by_index(index, device); }

/* A MIG instance is numbered within its card. */
NVML(nvmlDeviceGetIndex, nvmlDevice device, u32 *index) {
    CALL_ANY;
    NEEDS(index != NULL);
    *index = 0;
    if (is_instance(call.session, card)) {
        const u32 parent = whole_card(call.session, card);
        for (u32 i = next_instance(call.session, parent, 0); i < card; i = next_instance(call.session, parent, i + 1))
            ++*index;
    } else
        while (call.session->card[*index] != card) ++*index;
    return NVML_OK;
}

/* ---- By name ----------------------------------------------------------------------------------------------------- */

typedef bool matcher(const struct sim_model *model, const void *wanted);

/* The first card that this process may use, or MIG instance of one, that matches. */
static nvml_result by_match(const struct session *session, matcher *matches, const void *wanted, nvmlDevice *device) {
    for (u32 i = 0; i < session->cards; i++) {
        const u32 whole = session->card[i];
        if (matches(model_of(session, whole), wanted)) return give_device(session, whole, device);
        for (u32 card = next_instance(session, whole, 0); card < session->file->cards;
             card = next_instance(session, whole, card + 1))
            if (matches(model_of(session, card), wanted)) return give_device(session, card, device);
    }
    return NVML_NOT_FOUND;
}

static bool has_uuid(const struct sim_model *model, const void *uuid) { return strcasecmp(model->uuid, uuid) == 0; }

NVML(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice *device) {
    CALL;
    NEEDS(uuid != NULL && device != NULL);
    return by_match(call.session, has_uuid, uuid, device);
}

struct bus_id {
    u32 domain, bus, device;
};

/* [domain:]bus:device[.function] in hexadecimal, with domains of any length. */
static bool parse_bus_id(const char *text, struct bus_id *id) {
    unsigned long number[3] = {0};
    u32 count = 0;
    do {
        char *end;
        if (count == 3 || !isxdigit((unsigned char)*text)) return false;
        number[count++] = strtoul(text, &end, 16);
        text = end;
    } while (*text++ == ':');
    const bool ends = text[-1] == 0 || (text[-1] == '.' && isxdigit((unsigned char)text[0]) && text[1] == 0);
    if (count < 2 || !ends) return false;
    *id = (struct bus_id){count == 3 ? (u32)number[0] : 0, (u32)number[count - 2], (u32)number[count - 1]};
    return true;
}

static bool is_at(const struct sim_model *model, const void *wanted) {
    const struct bus_id *id = wanted;
    return model->domain == id->domain && model->bus == id->bus && model->device == id->device;
}

static nvml_result by_bus_id(const char *text, nvmlDevice *device) {
    CALL;
    NEEDS(text != NULL && device != NULL);
    struct bus_id id;
    if (!parse_bus_id(text, &id)) return NVML_NOT_FOUND;
    return by_match(call.session, is_at, &id, device);
}
NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *text, nvmlDevice *device) { return by_bus_id(text, device); }
NVML(nvmlDeviceGetHandleByPciBusId, const char *text, nvmlDevice *device) { return by_bus_id(text, device); }
