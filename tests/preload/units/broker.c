/* The session of a process that is alone with its broker. */
#include "units.h"

#include "preload/hooks/hooks.h"

#include <stdlib.h>

_Atomic uint64_t broker_limit, broker_lent;

/* Pages from malloc, so that a sanitizer detects accesses beyond them. */
void *os_map(size_t bytes) { return calloc(1, bytes); }
void os_unmap(void *address, size_t bytes) { (void)bytes, free(address); }

/* Nothing is passed between processes here. */
int os_pid(void) { return 1; }
bool os_look_at(int descriptor, struct os_file *file) { return (void)descriptor, (void)file, false; }
void os_close(int descriptor) { (void)descriptor; }

/* Nothing computes here. */
CUresult passage_begin_graph(struct passage *passage, CUgraphExec graph, CUstream stream, bool per_thread) {
    return (void)passage, (void)graph, (void)stream, (void)per_thread, CUDA_SUCCESS;
}
void passage_end(const struct passage *passage) { (void)passage; }
void cost_forget(CUgraphExec graph) { (void)graph; }

bool session_start(void) { return true; }
unsigned session_cards(void) { return 1; }
unsigned session_card_of(const unsigned char uuid[16]) { return (void)uuid, 0; }

/* Returns may arrive while a request is in flight. */
static struct os_lock books;

static void lend(struct wire *packet) {
    os_lock(&books);
    const uint64_t wanted = packet->amounts.lent, limit = atomic_load(&broker_limit);
    uint64_t lent = atomic_load(&broker_lent);
    packet->result = wanted <= lent || wanted <= limit ? WIRE_OK : WIRE_NO;
    packet->flags = WIRE_SURE; /* it knows no other process */
    if (wanted > lent && wanted <= limit) lent = wanted + (limit - wanted) / 16;
    atomic_store(&broker_lent, lent);
    packet->amounts.lent = lent;
    os_unlock(&books);
}

/* The broker always replies, so a thread waits for its turn as long as others are before it, on however slow a
   machine. */
bool session_ask(struct wire *packet, uint64_t deadline) {
    (void)deadline;
    atomic_store(&session_heard, OS_NEVER - SESSION_WAIT);
    packet->result = WIRE_OK;
    if (packet->what == WIRE_LEND) lend(packet);
    return true;
}

bool session_ask_once(struct wire *packet, uint64_t deadline) { return session_ask(packet, deadline); }

bool session_tell(struct wire *packet) {
    if (packet->what != WIRE_RETURN) return true;
    os_lock(&books);
    atomic_store(&broker_lent, packet->amounts.lent);
    os_unlock(&books);
    return true;
}
