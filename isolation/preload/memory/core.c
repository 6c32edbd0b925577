/* What libnvidia-ml.so.1 asks of this library. */
#include "../core/shared.h"

#include "view.h"

static bool view(unsigned card, uint64_t *limit, uint64_t *used) {
    struct view seen;
    if (!view_of(card, &seen)) return false;
    *limit = seen.limit;
    *used = seen.used;
    return true;
}

/* In turn: as many as one packet has, from number `first` on. The answer: how many there are in all, or -1. */
static int next_processes(unsigned card, unsigned first, struct wire *packet, uint64_t deadline) {
    *packet = (struct wire){.what = WIRE_PROCESSES_OF, .card = (uint16_t)card};
    packet->words[0] = first;
    if (!session_ask(packet, deadline)) return -1;
    return packet->result == WIRE_OK && packet->flags <= INT32_MAX ? (int)packet->flags : 0;
}

static int all_processes(unsigned card, struct partage_process *list, unsigned room, uint64_t deadline) {
    unsigned count = 0;
    int total;
    do {
        struct wire packet;
        total = next_processes(card, count, &packet, deadline);
        for (int n = 0; n < WIRE_PROCESSES && (int)count < total; n++, count++)
            if (count < room)
                list[count] = (struct partage_process){packet.processes[n].pid, packet.processes[n].bytes};
    } while (count < room && (int)count < total);
    return total;
}

static int processes(unsigned card, struct partage_process *list, unsigned room) {
    KEEP_ERRNO;
    const uint64_t deadline = os_now() + SESSION_WAIT;
    if (card >= MOST_CARDS) return 0;
    if (!session_enter(deadline)) return -1;
    const int total = all_processes(card, list, room, session_patience(deadline));
    session_leave();
    return total;
}

EXPORT const struct partage_core partage_core = {
    .bytes = sizeof(struct partage_core),
    .start = session_start,
    .card_of = session_card_of,
    .view = view,
    .processes = processes,
};
