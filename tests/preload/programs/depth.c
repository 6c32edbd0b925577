/* Measures how many launches a program has in flight:
 *
 *     depth KIND NANOSECONDS LAUNCHES TURNS
 *
 * Launches a kernel of that length LAUNCHES times, or a graph of one such, and waits for all; TURNS times. A line of
 * JSON has, from the turn with the most, the least number of launches in flight, as the card can't have completed more
 * than the elapsed time allows; and the processor's nanoseconds per launch at the median turn. `total` is the card's
 * memory as the program sees it.
 */
#include "calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TURNS = 256 };

static u64 ns_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static CUstream stream;
static CUfunction kernel;
static CUgraphExec executable; /* NULL: kernels are launched */

static void launch_kernel(u64 ns) { require(launch_for(kernel, stream, ns), "a launch"); }

static void make_graph(u64 ns) {
    CUgraph graph;
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    launch_kernel(ns);
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
}

static void launch(u64 ns) {
    if (executable)
        NEED(cuGraphLaunch, executable, stream);
    else
        launch_kernel(ns);
}

/* The least number of these launches that are still unfinished. */
static u64 left_of(u64 launches, u64 ns, u64 since) {
    const u64 done = (ns_of(CLOCK_MONOTONIC) - since) / ns;
    return launches > done ? launches - done : 0;
}

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* A real driver has threads. The simulated one has none, and in a process of one thread its locks cost less. */
static void *stand_by(void *unused) {
    for (;;) pause();
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    double costs[MOST_TURNS];
    size_t unused, total;
    u64 depth = 0;
    if (count != 5) stop_with("usage: depth kernel|graph NANOSECONDS LAUNCHES TURNS");
    const u64 ns = strtoull(words[2], NULL, 10), launches = strtoull(words[3], NULL, 10);
    const u64 turns = strtoull(words[4], NULL, 10);
    if (!ns || !launches || !turns || turns > MOST_TURNS) stop_with("depth: numbers from 1 on, at most 256 turns");
    pthread_create(&thread, NULL, stand_by, NULL);
    open_card();
    NEED(cuMemGetInfo_v2, &unused, &total);
    stream = new_stream(CU_STREAM_NON_BLOCKING);
    kernel = kernel_here();
    if (!strcmp(words[1], "graph")) make_graph(ns);
    for (u64 turn = 0; turn < turns; turn++) {
        const u64 since = ns_of(CLOCK_MONOTONIC), began = ns_of(CLOCK_THREAD_CPUTIME_ID);
        for (u64 n = 1; n <= launches; n++) {
            launch(ns);
            const u64 left = left_of(n, ns, since);
            if (left > depth) depth = left;
        }
        costs[turn] = (double)(ns_of(CLOCK_THREAD_CPUTIME_ID) - began) / (double)launches;
        NEED(cuStreamSynchronize, stream);
    }
    qsort(costs, turns, sizeof *costs, by_size);
    printf("{\"total\":%zu,\"depth\":%llu,\"cpu_ns\":%.1f}\n", total, (unsigned long long)depth, costs[turns / 2]);
    return 0;
}
