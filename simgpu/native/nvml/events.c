/* Events: sets of event types, and waiting for them.
 *
 * simgpud keeps the latest events in the node file. Each set remembers how far it has read, so every set gets every
 * event; an event that was overwritten before a set read it is lost, as with the real driver, and is never made up.
 */
#include "library.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
    EVENT_CORRECTED = 1 << 0,
    EVENT_UNCORRECTED = 1 << 1,
    EVENT_STATE = 1 << 2,
    EVENT_XID = 1 << 3,
    EVENT_CLOCK = 1 << 4,
    EVENT_MIG = 1 << 8,
};

struct nvml_event_set {
    struct nvml_event_set *next;
    u32 read;                      /* number of events read, of all that ever happened */
    u32 waiting_since[SIM_CARDS];  /* the number of events when a card was registered */
    u64 kinds[SIM_CARDS];
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set *sets; /* all existing sets: a handle is valid if it is one of these */

void events_fork_lock(void) { pthread_mutex_lock(&sets_lock); }
void events_fork_unlock(void) { pthread_mutex_unlock(&sets_lock); }

static struct nvml_event_set **place_of(nvmlEventSet set) {
    struct nvml_event_set **place = &sets;
    while (*place != NULL && *place != set) place = &(*place)->next;
    return place;
}

void events_forget_all(void) {
    pthread_mutex_lock(&sets_lock);
    while (sets != NULL) {
        struct nvml_event_set *first = sets;
        sets = first->next;
        free(first);
    }
    pthread_mutex_unlock(&sets_lock);
}

NVML(nvmlEventSetCreate, nvmlEventSet *set) {
    CALL;
    NEEDS(set != NULL);
    struct nvml_event_set *made = calloc(1, sizeof(*made));
    if (made == NULL) return NVML_OUT_OF_MEMORY;
    made->read = atomic_load(&call.session->file->events);
    pthread_mutex_lock(&sets_lock);
    made->next = sets;
    sets = made;
    pthread_mutex_unlock(&sets_lock);
    *set = made;
    return NVML_OK;
}

NVML(nvmlEventSetFree, nvmlEventSet set) {
    CALL;
    pthread_mutex_lock(&sets_lock);
    struct nvml_event_set **place = place_of(set), *found = *place;
    if (found != NULL) *place = found->next;
    pthread_mutex_unlock(&sets_lock);
    NEEDS(found != NULL);
    free(found);
    return NVML_OK;
}

static u64 supported(const struct sim_model *model) {
    u64 kinds = EVENT_STATE | EVENT_XID | EVENT_CLOCK;
    if (model->ecc) kinds |= EVENT_CORRECTED | EVENT_UNCORRECTED;
    if (model->mig_capable) kinds |= EVENT_MIG;
    return kinds;
}

NVML(nvmlDeviceGetSupportedEventTypes, nvmlDevice device, u64 *kinds) {
    CALL_CARD_OUT(kinds);
    *kinds = supported(model);
    return NVML_OK;
}

NVML(nvmlDeviceRegisterEvents, nvmlDevice device, u64 kinds, nvmlEventSet set) {
    CALL_CARD;
    if ((kinds & ~supported(model)) != 0) return NVML_NOT_SUPPORTED;
    pthread_mutex_lock(&sets_lock);
    struct nvml_event_set *found = *place_of(set);
    if (found != NULL && found->kinds[card] == 0) found->waiting_since[card] = atomic_load(&call.session->file->events);
    if (found != NULL) found->kinds[card] |= kinds;
    pthread_mutex_unlock(&sets_lock);
    NEEDS(found != NULL);
    return NVML_OK;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Event number `n` as it was written; false if a later one has replaced it. Numbers wrap, so they are compared by
 * difference. */
static bool copy_event(const struct sim_node_file *file, u32 n, struct sim_event *event) {
    for (;;) {
        const u32 before = atomic_load(&file->sequence);
        if (atomic_load(&file->events) - n > SIM_EVENTS) return false;
        *event = file->event[n % SIM_EVENTS];
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && atomic_load(&file->sequence) == before) return true;
        sched_yield();
    }
}

static bool is_wanted(const struct nvml_event_set *set, const struct session *session, u32 n,
                      const struct sim_event *event) {
    if (event->card >= session->file->cards) return false;
    const u32 card = whole_card(session, event->card);
    return (set->kinds[card] & event->type) != 0 && (int32_t)(n - set->waiting_since[card]) >= 0;
}

/* The next event of a registered type, among those up to `happened`. */
static bool next_event(struct nvml_event_set *set, const struct session *session, u32 happened,
                       struct sim_event *event) {
    if (happened - set->read > SIM_EVENTS) set->read = happened - SIM_EVENTS;
    while (set->read != happened) {
        const u32 n = set->read++;
        if (copy_event(session->file, n, event) && is_wanted(set, session, n, event)) return true;
    }
    return false;
}

static bool watches_lost_card(const struct nvml_event_set *set, const struct session *session) {
    for (u32 card = 0; card < session->file->cards; card++)
        if (set->kinds[card] != 0 && atomic_load(&session->file->card[card].live.health) != SIM_HEALTHY) return true;
    return false;
}

/* OK with an event; TIMEOUT if there is none yet. The set may have been freed since the last check. */
static nvml_result look(nvmlEventSet handle, const struct session *session, u32 happened, struct sim_event *event) {
    pthread_mutex_lock(&sets_lock);
    struct nvml_event_set *set = *place_of(handle);
    nvml_result result = NVML_TIMEOUT;
    if (set == NULL)
        result = NVML_INVALID_ARGUMENT;
    else if (next_event(set, session, happened, event))
        result = NVML_OK;
    else if (watches_lost_card(set, session))
        result = NVML_GPU_IS_LOST;
    pthread_mutex_unlock(&sets_lock);
    return result;
}

static nvml_result wait_for_event(const struct session *session, nvmlEventSet set, u32 timeout_ms,
                                  struct sim_event *event) {
    const u64 deadline = sim_now() + (u64)timeout_ms * 1000000;
    for (;;) {
        const u32 happened = atomic_load(&session->file->events);
        const nvml_result result = look(set, session, happened, event);
        if (result != NVML_TIMEOUT) return result;
        const u64 now = sim_now();
        TRY(session_wait(session, &session->file->events, happened, now < deadline ? deadline - now : 0));
    }
}

static void fill_event(const struct session *session, const struct sim_event *event, struct nvml_event *data) {
    const bool instance = is_instance(session, event->card);
    const struct sim_model *model = model_of(session, event->card);
    *data = (struct nvml_event){
        .device = device_of(session, whole_card(session, event->card)),
        .type = event->type,
        .data = event->data,
        .gpu_instance = instance ? model->gpu_instance : NVML_NO_INSTANCE,
        .compute_instance = instance ? model->compute_instance : NVML_NO_INSTANCE,
    };
}

NVML(nvmlEventSetWait_v2, nvmlEventSet set, struct nvml_event *data, u32 timeout_ms) {
    CALL;
    NEEDS(data != NULL);
    struct sim_event event;
    TRY(wait_for_event(call.session, set, timeout_ms, &event));
    fill_event(call.session, &event, data);
    return NVML_OK;
}

/* This version has no MIG fields. */
NVML(nvmlEventSetWait, nvmlEventSet set, struct nvml_event_v1 *data, u32 timeout_ms) {
    CALL;
    NEEDS(data != NULL);
    struct sim_event event;
    TRY(wait_for_event(call.session, set, timeout_ms, &event));
    struct nvml_event all;
    fill_event(call.session, &event, &all);
    *data = (struct nvml_event_v1){all.device, all.type, all.data};
    return NVML_OK;
}
