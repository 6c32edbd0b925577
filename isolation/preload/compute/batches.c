/* Batches of launches, each enclosed by two events. The duration that the driver reports for a batch updates the
 * estimated time of each kind of launch: the stream's kernels, and each graph. The driver is queried only between
 * batches.
 *
 * A batch may contain several kinds, such as the graphs of a model's layers with kernels in between. Its time is then
 * divided in proportion to the estimates, so the sum is correct.
 */
#include "window.h"

REAL_CALL(cuEventCreate, CUevent *event, unsigned flags);
REAL_CALL(cuEventRecord, CUevent event, CUstream stream);
REAL_CALL(cuEventQuery, CUevent event);
REAL_CALL(cuEventElapsedTime, float *ms, CUevent from, CUevent to);
REAL_CALL(cuEventDestroy_v2, CUevent event);

/* ---- cost of launches -------------------------------------------------------------------------------------------- */

/* Graphs that were launched. entry.bytes: ns of one launch, 0 if unknown; entry.times: 1 plus the largest number of
 * launches in one batch that showed it; entry.serial: identifies the graph, since another one may later have its
 * handle. */
static struct table graphs;
static _Atomic uint32_t serials;

/* A moving average that converges within a few samples, and faster downwards: a batch's time is exact or too long,
 * since a stream pauses while its program waits or has no time slice. */
static uint64_t mixed(uint64_t before, uint64_t sample) {
    if (!sample) sample = 1;
    if (before && sample < before) return before / 2 + sample / 2;
    return before ? before + sample / 4 - before / 4 : sample;
}

struct rate batch_rate(const struct lane *lane, CUgraphExec graph) {
    struct entry entry;
    if (!graph) return (struct rate){.cost = lane->cost, .proved = lane->proved};
    if (!table_get(&graphs, (uint64_t)graph, &entry)) return (struct rate){0};
    return (struct rate){.cost = entry.bytes, .proved = entry.times - 1u, .met = entry.serial};
}

/* A graph that is not in the table was destroyed or changed since, or there was no room for it. */
static void learn_graph(const struct kind *kind, uint64_t ns) {
    struct entry entry, before;
    if (!table_get(&graphs, (uint64_t)kind->graph, &entry) || entry.serial != kind->met) return;
    const uint32_t times = 1 + kind->launches;
    entry.bytes = mixed(entry.bytes, ns);
    if (times > entry.times) entry.times = times < UINT16_MAX ? (uint16_t)times : UINT16_MAX;
    table_put(&graphs, &entry, &before);
}

static void learn_kernels(struct lane *lane, const struct kind *kind, uint64_t ns) {
    lane->cost = mixed(lane->cost, ns);
    lane->proved = kind->launches;
}

static void meet(CUgraphExec graph) {
    struct entry entry = {.key = (uint64_t)graph, .times = 1}, before;
    if (table_get(&graphs, entry.key, &before)) return;
    do entry.serial = atomic_fetch_add(&serials, 1) + 1;
    while (!entry.serial);
    table_put(&graphs, &entry, &before);
}

void costs_forget(void) { table_forget(&graphs); }

/* ---- events ----------------------------------------------------------------------------------------------------- */

static bool record(struct lane *lane, CUevent *event) {
    if (!may_record(lane->stream)) return false;
    if (!*event && lane_context_push(lane)) {
        if (DRIVER(REAL(cuEventCreate)(event, 0)) != CUDA_SUCCESS) *event = NULL;
        lane->has_no_events = !*event;
        lane_context_pop();
    }
    return *event && DRIVER(REAL(cuEventRecord)(*event, lane->stream)) == CUDA_SUCCESS;
}

static CUresult ask(CUevent event) {
    const int mode = unnoticed_begin();
    const CUresult result = DRIVER(REAL(cuEventQuery)(event));
    unnoticed_end(mode);
    return result;
}

/* 0: unknown. */
static uint64_t between(CUevent from, CUevent to) {
    float ms = 0;
    const int mode = unnoticed_begin();
    const CUresult result = from && to ? DRIVER(REAL(cuEventElapsedTime)(&ms, from, to)) : CUDA_ERROR_INVALID_HANDLE;
    unnoticed_end(mode);
    return result == CUDA_SUCCESS && ms >= 0 ? (uint64_t)((double)ms * OS_MS) + 1 : 0;
}

static void destroy(CUevent *event) {
    if (*event) DRIVER(REAL(cuEventDestroy_v2)(*event));
    *event = NULL;
}

void window_drop(struct lane *lane, bool with_context) {
    os_lock(&lane->lock);
    for (unsigned n = 0; n < BATCHES && !with_context; n++) {
        destroy(&lane->batches[n].begin);
        destroy(&lane->batches[n].end);
    }
    if (!with_context) destroy(&lane->drain);
    lane->count = 0;
    lane->last_end = NULL;
    os_unlock(&lane->lock);
}

/* ---- the open batch --------------------------------------------------------------------------------------------- */

void batch_open(struct lane *lane, uint64_t now, uint64_t budget) {
    struct batch *batch = batch_next(lane);
    batch->since = now;
    batch->many = 0;
    batch->has_begin = !lane->count && record(lane, &batch->begin);
    if (!lane->count && !batch->has_begin) lane->last_end = NULL;
    lane->closed = atomic_load_explicit(&lane->launched, memory_order_relaxed);
    lane->budget = budget;
    lane->is_open = true;
}

struct kind *batch_kind(struct lane *lane, CUgraphExec graph) {
    struct batch *batch = batch_next(lane);
    for (unsigned n = 0; n < batch->many; n++)
        if (batch->kinds[n].graph == graph) return &batch->kinds[n];
    if (batch->many == KINDS - 1) return NULL; /* the last place is reserved for kernels */
    const struct rate rate = batch_rate(lane, graph);
    batch->kinds[batch->many] = (struct kind){.graph = graph, .cost = rate.cost, .met = rate.met};
    return &batch->kinds[batch->many++];
}

/* Adds the spent part of the graph's credit to the open batch. */
static void settle(struct lane *lane) {
    const CUgraphExec graph = atomic_load_explicit(&lane->graph, memory_order_relaxed);
    const int32_t left = atomic_load_explicit(&lane->graph_credit, memory_order_relaxed);
    struct kind *kind = graph && lane->is_open ? batch_kind(lane, graph) : NULL;
    if (kind && left < lane->granted) kind->launches += (uint32_t)(lane->granted - left);
    lane->granted = left;
}

void batch_grant(struct lane *lane, CUgraphExec graph, uint32_t launches) {
    settle(lane);
    if (!graph) return atomic_store_explicit(&lane->credit, (int32_t)launches, memory_order_relaxed);
    meet(graph);
    atomic_store_explicit(&lane->graph, graph, memory_order_relaxed);
    atomic_store_explicit(&lane->graph_credit, (int32_t)launches, memory_order_relaxed);
    lane->granted = (int32_t)launches;
}

static void take_credit(struct lane *lane, void *graph) {
    os_lock(&lane->lock);
    if (atomic_load_explicit(&lane->graph, memory_order_relaxed) == graph) {
        settle(lane);
        atomic_store_explicit(&lane->graph, NULL, memory_order_relaxed);
        atomic_store_explicit(&lane->graph_credit, 0, memory_order_relaxed);
        lane->granted = 0;
    }
    os_unlock(&lane->lock);
}

void cost_forget(CUgraphExec graph) {
    struct entry entry;
    if (!table_take(&graphs, (uint64_t)graph, &entry)) return;
    for (unsigned card = 0; card < session_cards(); card++) lanes_each(card, take_credit, graph);
}

/* Launches that belong to no graph. */
static uint32_t kernels_of(const struct lane *lane, const struct batch *batch) {
    uint32_t kernels = atomic_load_explicit(&lane->launched, memory_order_relaxed) - lane->closed;
    for (unsigned n = 0; n < batch->many; n++)
        kernels -= kernels < batch->kinds[n].launches ? kernels : batch->kinds[n].launches;
    return kernels;
}

uint64_t batch_expected(struct lane *lane) {
    settle(lane);
    const struct batch *batch = batch_next(lane);
    uint64_t ns = kernels_of(lane, batch) * lane->cost;
    for (unsigned n = 0; n < batch->many; n++) ns += batch->kinds[n].launches * batch->kinds[n].cost;
    return ns;
}

void batch_close(struct lane *lane) {
    const uint32_t launched = atomic_load_explicit(&lane->launched, memory_order_relaxed);
    struct batch *batch = batch_next(lane);
    if (!lane->is_open || launched == lane->closed) return;
    batch->expected = batch_expected(lane);
    const uint32_t kernels = kernels_of(lane, batch);
    if (kernels) batch->kinds[batch->many++] = (struct kind){.launches = kernels, .cost = lane->cost};
    batch->launches = launched - lane->closed;
    atomic_store_explicit(&lane->credit, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->graph_credit, 0, memory_order_relaxed);
    lane->granted = 0;
    lane->closed = launched;
    lane->is_open = false;
    if (record(lane, &batch->end)) lane->count++;
}

/* ---- closed batches ---------------------------------------------------------------------------------------------- */

static void learn(struct lane *lane, const struct batch *batch) {
    const uint64_t took = between(batch->has_begin ? batch->begin : lane->last_end, batch->end);
    if (!took || !batch->launches) return;
    const double scale = batch->expected ? (double)took / (double)batch->expected : 0;
    for (unsigned n = 0; n < batch->many; n++) {
        const struct kind *kind = &batch->kinds[n];
        const uint64_t each = scale ? (uint64_t)((double)kind->cost * scale) : took / batch->launches;
        if (!kind->launches) continue;
        if (kind->graph)
            learn_graph(kind, each);
        else
            learn_kernels(lane, kind, each);
    }
}

/* If the driver has no result for one batch, it has none for the others either. */
void batch_reap(struct lane *lane, uint64_t now) {
    while (lane->count) {
        const struct batch *oldest = batch_nth(lane, 0);
        const CUresult result = ask(oldest->end);
        if (result == CUDA_ERROR_NOT_READY) return;
        if (result == CUDA_SUCCESS) learn(lane, oldest);
        lane->last_done = now;
        lane->last_end = result == CUDA_SUCCESS ? oldest->end : NULL;
        lane->first = (lane->first + 1) % BATCHES;
        lane->count--;
    }
}

void batch_forget_unseen(struct lane *lane) {
    const uint32_t unseen = atomic_load(&lane->gate->unseen);
    if (lane->unseen == unseen) return;
    lane->unseen = unseen;
    lane->count = 0;
    lane->is_open = false;
}
