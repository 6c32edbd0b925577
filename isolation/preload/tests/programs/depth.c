/* How many graphs a program has in flight:
 *
 *     depth NANOSECONDS LAUNCHES TURNS
 *
 * Launches a graph of one kernel of that length so often, TURNS times. A line of JSON tells, for the turn that came
 * furthest, how many launches the driver had when so many at least were not done, as the card can't have done more
 * than the time allows; and the processor's nanoseconds that one launch took at the median turn. `total` is how much
 * memory the card seems to have.
 */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_TURNS = 256 };

static u64 ns_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static CUgraphExec graph_of(CUstream stream, u64 ns) {
    CUmodule module;
    CUfunction kernel;
    CUgraph graph;
    CUgraphExec executable;
    void *parameters[] = {&ns};
    NEED(cuModuleLoadData, &module, "anything");
    NEED(cuModuleGetFunction, &kernel, module, "sim_arg");
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    NEED(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

/* What is left of so many launches at least, by now. */
static u64 left_of(u64 launches, u64 ns, u64 since) {
    const u64 done = (ns_of(CLOCK_MONOTONIC) - since) / ns;
    return launches > done ? launches - done : 0;
}

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    double costs[MOST_TURNS];
    CUcontext context;
    CUstream stream;
    size_t unused, total;
    u64 depth = 0;
    calls_find();
    if (count != 4) stop_with("usage: depth NANOSECONDS LAUNCHES TURNS");
    const u64 ns = strtoull(words[1], NULL, 10), launches = strtoull(words[2], NULL, 10);
    const u64 turns = strtoull(words[3], NULL, 10);
    if (!ns || !launches || !turns || turns > MOST_TURNS) stop_with("depth: numbers from 1 on, at most 256 turns");
    NEED(cuInit, 0);
    NEED(cuDevicePrimaryCtxRetain, &context, 0);
    NEED(cuCtxSetCurrent, context);
    NEED(cuMemGetInfo_v2, &unused, &total);
    NEED(cuStreamCreate, &stream, 1);
    const CUgraphExec executable = graph_of(stream, ns);
    for (u64 turn = 0; turn < turns; turn++) {
        const u64 since = ns_of(CLOCK_MONOTONIC), began = ns_of(CLOCK_THREAD_CPUTIME_ID);
        for (u64 n = 1; n <= launches; n++) {
            NEED(cuGraphLaunch, executable, stream);
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
