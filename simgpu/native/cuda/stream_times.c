/* When positions in streams were reached: marks, and the events recorded there. */
#include "streams.h"

#include <stdlib.h>

struct mark *mark_new(struct device *device, bool known, u64 local) {
    struct mark *mark = malloc(sizeof *mark);
    if (mark) *mark = (struct mark){.references = 1, .known = known, .device = device, .local = local};
    return mark;
}

struct mark *mark_keep(struct mark *mark) {
    atomic_fetch_add(&mark->references, 1);
    return mark;
}

void mark_drop(struct mark *mark) {
    if (mark && atomic_fetch_sub(&mark->references, 1) == 1) free(mark);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void timing_remove(struct cuda_event *event) {
    struct device *device = event->device;
    if (!event->timing) return;
    if (event->newer) event->newer->older = event->older;
    if (event->older)
        event->older->newer = event->newer;
    else
        device->timing = event->newer;
    if (device->timing_last == event) device->timing_last = event->older;
    event->newer = event->older = NULL;
    event->timing = false;
}

/* Sorted by time; most are appended. */
static void timing_add(struct cuda_event *event) {
    struct device *device = event->device;
    struct cuda_event *older = device->timing_last;
    while (older && older->local > event->local) older = older->older;
    event->older = older;
    event->newer = older ? older->newer : device->timing;
    if (older)
        older->newer = event;
    else
        device->timing = event;
    if (event->newer)
        event->newer->older = event;
    else
        device->timing_last = event;
    event->timing = true;
}

void events_resolve(struct device *device, const struct sim_share *share) {
    while (device->timing && device->timing->local <= share->received) {
        struct cuda_event *event = device->timing;
        event->wall = sim_wall_of(share, event->local);
        timing_remove(event);
    }
}

void event_forget(struct cuda_event *event) {
    timing_remove(event);
    mark_drop(event->mark);
    event->mark = NULL;
    event->wall = 0;
}

/* Under device->advancing. The event has already happened: its time is now, as no work preceded it when it was
 * recorded. */
static void happen_at(struct cuda_event *event, u64 local) {
    struct device *device = event->device;
    event_forget(event);
    event->local = local;
    event->recorded = true;
    if (local <= device->received)
        event->wall = local + device->lag;
    else if (!(event->flags & CU_EVENT_DISABLE_TIMING))
        timing_add(event);
}

void event_set(struct cuda_event *event, struct device *device, u64 local) {
    HOLD(device->advancing);
    happen_at(event, local);
}

void event_reached(struct cuda_event *event, const struct mark *mark) {
    HOLD(event->device->advancing);
    if (event->mark == mark) happen_at(event, mark->local);
}

void event_mark(struct cuda_event *event, struct mark *mark) {
    struct device *device = event->device;
    HOLD(device->advancing);
    event_forget(event);
    event->recorded = true;
    event->mark = mark;
    if (mark->known) happen_at(event, mark->local);
}

u64 event_wall(struct cuda_event *event) {
    if (event->wall) return event->wall;
    struct sim_share share = sim_share_of(event->device->line, (u32)event->device->row, NULL);
    timing_remove(event);
    return event->wall = sim_wall_of(&share, event->local);
}
