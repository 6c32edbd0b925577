/* Uses a card's time until it is killed, and prints the card's progress:
 *
 *   flood HOW KERNEL_US ROUNDS_PER_US [DRIVER]
 *
 *   queue      launches without ever waiting
 *   wait       waits for each kernel
 *   legacy     launches without waiting into the legacy stream, beside a stream that blocks it
 *   dependent  launches without waiting, each kernel allowed to begin before the previous one ends
 *   graph      launches a graph of ten kernels without ever waiting
 *   captured   as legacy, with a capture of a side stream that was begun before and is never ended
 *   past       as queue, in a context created by the library at DRIVER
 *   calibrate  no flood: prints the rounds per microsecond while the card does nothing else
 *
 * ROUNDS_PER_US is the output of `calibrate`; 0: kernels spin by the clock. Each tenth of a second it prints a line:
 * the monotonic clock in seconds, and the number of completed kernels.
 */
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = 64, MOST_UNMARKED = 64 };

static const double SAID_EVERY_S = .1, MARKED_EVERY_S = .002;

/* A ring of events, each after a number of kernels. */
static struct {
    CUevent event[MARKS];
    u64 kernels[MARKS], made, reached, done;
} marks;

static void mark(CUstream stream, u64 kernels) {
    if (marks.made - marks.reached == MARKS) NEED(cuEventSynchronize, marks.event[marks.reached % MARKS]);
    while (marks.reached < marks.made) {
        static __typeof__(cuEventQuery) *query;
        if (!query) query = (__typeof__(cuEventQuery) *)driver_symbol("cuEventQuery");
        const CUresult result = query(marks.event[marks.reached % MARKS]);
        if (result == CUDA_ERROR_NOT_READY) break;
        require(result, "cuEventQuery");
        marks.done = marks.kernels[marks.reached++ % MARKS];
    }
    if (marks.made - marks.reached == MARKS) return;
    marks.kernels[marks.made % MARKS] = kernels;
    NEED(cuEventRecord, marks.event[marks.made++ % MARKS], stream);
}

/* The work that a flood launches, and its stream. */
struct flood {
    struct kernel kernel;
    CUstream stream, side;
    CUgraphExec graph;
    u64 launched;
};

/* ---- ways: each launches once and returns the number of kernels ---------------------------------------------------
 */

static u64 queue(struct flood *flood) {
    require(launch(&flood->kernel, flood->stream), "a launch");
    return 1;
}

static u64 wait_for_each(struct flood *flood) {
    queue(flood);
    NEED(cuStreamSynchronize, flood->stream);
    return 1;
}

static u64 beside_another(struct flood *flood) {
    if (flood->launched % 16) return queue(flood);
    require(launch(&flood->kernel, flood->side), "a launch beside it");
    return 1 + queue(flood);
}

static u64 dependent(struct flood *flood) {
    static __typeof__(cuLaunchKernelEx) *function;
    if (!function) function = (__typeof__(cuLaunchKernelEx) *)driver_symbol("cuLaunchKernelEx");
    CUlaunchAttribute early = {.id = 6 /* programmatic stream serialization */, .value = {1}};
    const CUlaunchConfig config = {
        .shape = {{1, 1, 1}, {32, 1, 1}, 0}, .stream = flood->stream, .attributes = &early, .attribute_count = 1};
    require(function(&config, flood->kernel.function, PARAMETERS(&flood->kernel), NULL), "a dependent launch");
    return 1;
}

enum { IN_GRAPH = 10 };

static CUgraphExec graph_of(const struct flood *flood) {
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, flood->stream, CAPTURE_THREAD_LOCAL);
    for (int i = 0; i < IN_GRAPH; i++) require(launch(&flood->kernel, flood->stream), "a captured launch");
    NEED(cuStreamEndCapture, flood->stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

static u64 graph(struct flood *flood) {
    static __typeof__(cuGraphLaunch) *function;
    if (!function) function = (__typeof__(cuGraphLaunch) *)driver_symbol("cuGraphLaunch");
    if (!flood->graph) flood->graph = graph_of(flood);
    require(function(flood->graph, flood->stream), "a graph launch");
    return IN_GRAPH;
}

static const struct way {
    const char *name;
    u64 (*go)(struct flood *flood);
    bool legacy, captures, past;
} ways[] = {
    {.name = "queue", .go = queue},
    {.name = "wait", .go = wait_for_each},
    {.name = "dependent", .go = dependent},
    {.name = "graph", .go = graph},
    {.name = "legacy", .go = beside_another, .legacy = true},
    {.name = "captured", .go = queue, .legacy = true, .captures = true},
    {.name = "past", .go = queue, .past = true},
};

static const struct way *way_called(const char *name) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(name, ways[i].name)) return &ways[i];
    stop_with("flood: %s: see its first comment", name);
}

static void calibrate(void) {
    const u64 rounds = 2000000, told_ns = 20000000;
    const struct kernel kernel = kernel_of(told_ns, rounds);
    CUevent from, to;
    float ms = 0;
    NEED(cuEventCreate, &from, 0);
    NEED(cuEventCreate, &to, 0);
    for (int i = 0; i < 20; i++) { /* the first ones let the card's clock rise */
        NEED(cuEventRecord, from, NULL);
        require(launch(&kernel, NULL), "cuLaunchKernel");
        NEED(cuEventRecord, to, NULL);
        NEED(cuEventSynchronize, to);
        NEED(cuEventElapsedTime, &ms, from, to);
    }
    printf("%.3f\n", (double)rounds / ((double)ms * 1e3));
}

static struct flood begun(const struct way *way, double kernel_us, double rounds_per_us) {
    struct flood flood = {.kernel = kernel_of((u64)(kernel_us * 1e3), (u64)(kernel_us * rounds_per_us))};
    NEED(cuStreamCreate, &flood.stream, CU_STREAM_NON_BLOCKING);
    NEED(cuStreamCreate, &flood.side, way->captures ? CU_STREAM_NON_BLOCKING : 0);
    if (way->captures) NEED(cuStreamBeginCapture_v2, flood.side, CAPTURE_RELAXED);
    if (way->legacy) flood.stream = CU_STREAM_LEGACY;
    for (int i = 0; i < MARKS; i++) NEED(cuEventCreate, &marks.event[i], CU_EVENT_DISABLE_TIMING);
    return flood;
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "calibrate")) return open_card(NULL), calibrate(), 0;
    if (count < 4) stop_with("flood: see its first comment");
    const struct way *way = way_called(words[1]);
    open_card(way->past && count > 4 ? words[4] : NULL);
    struct flood flood = begun(way, strtod(words[2], NULL), strtod(words[3], NULL));
    double said = 0, marked = 0;
    for (unsigned unmarked = 0;;) {
        flood.launched += way->go(&flood);
        const double now = now_s();
        if (++unmarked >= MOST_UNMARKED || now - marked > MARKED_EVERY_S)
            mark(flood.stream, flood.launched), unmarked = 0, marked = now;
        if (now - said < SAID_EVERY_S) continue;
        said = now;
        printf("%.6f %llu\n", now, (unsigned long long)(way->go == wait_for_each ? flood.launched : marks.done));
        if (fflush(stdout)) return 0;
    }
}
