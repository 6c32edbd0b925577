/* How cards lie to each other and to the processors. */
#define _GNU_SOURCE
#include "library.h"

#include <sched.h>

/* What the model of a node knows of distance: the same PCIe bus, the same NUMA node, the same machine. */
enum { LEVEL_INTERNAL = 0, LEVEL_SINGLE = 10, LEVEL_NODE = 40, LEVEL_SYSTEM = 50 };

static u32 level_between(const struct session *session, u32 one, u32 other) {
    const struct sim_model *a = model_of(session, one), *b = model_of(session, other);
    if (one == other) return LEVEL_INTERNAL;
    if (a->domain == b->domain && a->bus == b->bus) return LEVEL_SINGLE;
    return a->numa == b->numa ? LEVEL_NODE : LEVEL_SYSTEM;
}

/* As CALL_CARD for two. */
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

/* A count of 0 asks how many there are. */
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

static bool is_near_cpu(const struct sim_model *model, u32 cpu) {
    return cpu / 64 < 16 && (model->cpus[cpu / 64] >> cpu % 64 & 1) != 0;
}

NVML(nvmlSystemGetTopologyGpuSet, u32 cpu, u32 *room, nvmlDevice *list) {
    CALL;
    NEEDS(room != NULL);
    u32 near[SIM_CARDS], count = 0;
    for (u32 i = 0; i < call.session->cards; i++)
        if (is_near_cpu(model_of(call.session, call.session->card[i]), cpu)) near[count++] = call.session->card[i];
    return give_devices(call.session, count, near, room, list);
}

enum { PEER_READ, PEER_WRITE, PEER_NVLINK, PEER_ATOMICS, PEER_PCI };
enum { PEER_OK = 0, PEER_CHIPSET = 1, PEER_NOT_SUPPORTED = 5 };

/* Consumer cards reach each other by no way; others by NVLink, or by PCIe, which has no atomics. */
NVML(nvmlDeviceGetP2PStatus, nvmlDevice device, nvmlDevice other, u32 capability, u32 *status) {
    CALL_PAIR;
    NEEDS(status != NULL && capability <= PEER_PCI);
    const bool linked = has_nvlink_to(model, second);
    const bool needs_link = capability == PEER_NVLINK || capability == PEER_ATOMICS;
    *status = linked || !needs_link ? PEER_OK : PEER_NOT_SUPPORTED;
    if (is_geforce(model)) *status = needs_link ? PEER_NOT_SUPPORTED : PEER_CHIPSET;
    return NVML_OK;
}

NVML(nvmlDeviceOnSameBoard, nvmlDevice device, nvmlDevice other, int *same) {
    CALL_PAIR;
    NEEDS(same != NULL);
    *same = card == second;
    return NVML_OK;
}

/* ---- Processors and memory --------------------------------------------------------------------------------------- */

enum { SCOPE_NODE, SCOPE_SOCKET, SCOPES };

static bool knows_cpus(const struct sim_model *model) {
    u64 any = 0;
    for (u32 i = 0; i < 16; i++) any |= model->cpus[i];
    return any != 0;
}

static nvml_result near_cpus(nvmlDevice device, u32 words, unsigned long *cpus, u32 scope) {
    CALL_CARD_OUT(cpus);
    NEEDS(words > 0 && scope < SCOPES);
    if (!knows_cpus(model)) return NVML_NOT_SUPPORTED;
    for (u32 i = 0; i < words; i++) cpus[i] = i < 16 ? model->cpus[i] : 0;
    return NVML_OK;
}
NVML(nvmlDeviceGetCpuAffinityWithinScope, nvmlDevice device, u32 words, unsigned long *cpus, u32 scope) {
    return near_cpus(device, words, cpus, scope);
}
NVML(nvmlDeviceGetCpuAffinity, nvmlDevice device, u32 words, unsigned long *cpus) {
    return near_cpus(device, words, cpus, SCOPE_NODE);
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

static nvml_result bind_thread(const cpu_set_t *cpus) {
    return sched_setaffinity(0, sizeof(*cpus), cpus) == 0 ? NVML_OK : NVML_NOT_SUPPORTED;
}

/* Binds the calling thread. A simulated node may have processors that this machine lacks: those that it has count. */
NVML(nvmlDeviceSetCpuAffinity, nvmlDevice device) {
    CALL_CARD;
    if (!knows_cpus(model)) return NVML_NOT_SUPPORTED;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (u32 cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (is_near_cpu(model, cpu)) CPU_SET(cpu, &cpus);
    return bind_thread(&cpus);
}

NVML(nvmlDeviceClearCpuAffinity, nvmlDevice device) {
    CALL_CARD;
    cpu_set_t cpus;
    memset(&cpus, 0xff, sizeof(cpus));
    return bind_thread(&cpus);
}
