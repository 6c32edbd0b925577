/* Topology: distances between cards, and from cards to processors. */
#define _GNU_SOURCE
#include "library.h"

#include <sched.h>

/* Distances known to a node's model: the same PCIe bus or switch, the same NUMA node, the same machine. */
enum { LEVEL_INTERNAL = 0, LEVEL_SINGLE = 10, LEVEL_NODE = 40, LEVEL_SYSTEM = 50 };

static u32 level_between(const struct session *session, u32 one, u32 other) {
    const struct sim_model *a = model_of(session, one), *b = model_of(session, other);
    if (one == other) return LEVEL_INTERNAL;
    if (a->domain == b->domain && a->bus == b->bus) return LEVEL_SINGLE;
    if (a->pcie_switch >= 0 && a->pcie_switch == b->pcie_switch) return LEVEL_SINGLE;
    return a->numa == b->numa ? LEVEL_NODE : LEVEL_SYSTEM;
}

/* As CALL_CARD, for two cards. */
#define CALL_PAIR                                                                                                      \
    CALL_CARD;                                                                                                         \
    u32 second;                                                                                                        \
    TRY(card_of(call.session, other, &second));                                                                        \
    if (is_instance(call.session, second)) return NVML_NOT_SUPPORTED

NVML(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice device, nvmlDevice other, u32 *level) {
    CALL_PAIR;
    NEEDS(level != NULL);
    *level = level_between(call.session, card, second);
    return NVML_OK;
}

/* A count of 0 queries the number. */
static nvml_result give_devices(const struct session *session, u32 count, const u32 *cards, u32 *room,
                                nvmlDevice *list) {
    if (*room > 0) {
        NEEDS(list != NULL);
        for (u32 i = 0; i < count && i < *room; i++) list[i] = device_of(session, cards[i]);
    }
    *room = count;
    return NVML_OK;
}

NVML(nvmlDeviceGetTopologyNearestGpus, nvmlDevice device, u32 level, u32 *room, nvmlDevice *list) {
    CALL_CARD;
    NEEDS(room != NULL && level <= LEVEL_SYSTEM && level % 10 == 0);
    u32 near[SIM_CARDS], count = 0;
    for (u32 i = 0; i < call.session->cards; i++) {
        const u32 other = call.session->card[i];
        if (other != card && level_between(call.session, card, other) == level) near[count++] = other;
    }
    return give_devices(call.session, count, near, room, list);
}

/* ---- Processors and memory --------------------------------------------------------------------------------------- */

enum { SCOPES = 2 };

static bool knows_cpus(const struct sim_model *model) {
    u64 any = 0;
    for (u32 i = 0; i < 16; i++) any |= model->cpus[i];
    return any != 0;
}

NVML(nvmlDeviceGetCpuAffinity, nvmlDevice device, u32 words, unsigned long *cpus) {
    CALL_CARD_OUT(cpus);
    NEEDS(words > 0);
    if (!knows_cpus(model)) return NVML_NOT_SUPPORTED;
    for (u32 i = 0; i < words; i++) cpus[i] = i < 16 ? model->cpus[i] : 0;
    return NVML_OK;
}
NVML(nvmlDeviceGetMemoryAffinity, nvmlDevice device, u32 words, unsigned long *nodes, u32 scope) {
    CALL_CARD_OUT(nodes);
    NEEDS(words > 0 && scope < SCOPES);
    if (model->numa < 0) return NVML_NOT_SUPPORTED;
    for (u32 i = 0; i < words; i++) nodes[i] = 0;
    const u32 node = (u32)model->numa;
    if (node / 64 < words) nodes[node / 64] = 1ul << node % 64;
    return NVML_OK;
}
