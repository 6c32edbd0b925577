/* Threads launch in every way at once, into streams, graphs and contexts that come and go:
 *
 *     gating THREADS TURNS SEED
 *
 * Its runner opens and closes the gate meanwhile. Exits with 0 if the driver never returned an error.
 */
#include "calls.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, SHORT_NS = 20000, LONGER_NS = 300000 };

static CUcontext primary;
static CUfunction kernel_;
static unsigned turns;

static unsigned roll(unsigned *dice) {
    *dice = *dice * 1664525u + 1013904223u;
    return *dice >> 8;
}

static void launch(CUfunction kernel, CUstream stream, u64 ns) { require(launch_for(kernel, stream, ns), "a launch"); }

static void launch_graph(CUstream stream) {
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    for (int n = 0; n < 3; n++) launch(kernel_, stream, SHORT_NS);
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    NEED(cuGraphLaunch, executable, stream);
    NEED(cuGraphDestroy, graph);
    NEED(cuGraphExecDestroy, executable);
}

static void use_another_context(void) {
    CUcontext context;
    NEED(cuCtxCreate_v2, &context, 0, 0);
    const CUfunction kernel = kernel_here();
    const CUstream stream = new_stream(1);
    launch(kernel, stream, SHORT_NS);
    launch(kernel, NULL, SHORT_NS);
    NEED(cuCtxDestroy_v2, context);
    NEED(cuCtxSetCurrent, primary);
}

static void use_another_stream(unsigned flags) {
    const CUstream stream = new_stream(flags);
    launch(kernel_, stream, LONGER_NS);
    NEED(cuStreamDestroy_v2, stream);
}

static void *work(void *seed) {
    unsigned dice = (unsigned)(uintptr_t)seed;
    NEED(cuCtxSetCurrent, primary);
    const CUstream own = new_stream(1);
    for (unsigned turn = 0; turn < turns; turn++) {
        const unsigned way = roll(&dice) % 64;
        if (way == 0)
            use_another_context();
        else if (way < 4)
            use_another_stream(way & 1);
        else if (way < 8)
            launch_graph(own);
        else if (way < 16)
            launch(kernel_, CU_STREAM_PER_THREAD, SHORT_NS);
        else
            launch(kernel_, own, way % 8 ? SHORT_NS : LONGER_NS);
    }
    NEED(cuStreamSynchronize, own);
    return NULL;
}

int main(int count, char **words) {
    pthread_t thread[MOST_THREADS];
    if (count != 4) stop_with("gating: see its first comment");
    const unsigned threads = (unsigned)atoi(words[1]), seed = (unsigned)atoi(words[3]);
    turns = (unsigned)atoi(words[2]);
    if (!threads || threads > MOST_THREADS) stop_with("gating: %u are not some threads", threads);
    primary = open_card();
    kernel_ = kernel_here();
    launch(kernel_, CU_STREAM_LEGACY, SHORT_NS);
    for (unsigned n = 0; n < threads; n++) pthread_create(&thread[n], NULL, work, (void *)(uintptr_t)(seed + n));
    for (unsigned n = 0; n < threads; n++) pthread_join(thread[n], NULL);
    NEED(cuCtxSynchronize);
    return 0;
}
