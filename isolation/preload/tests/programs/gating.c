/* Threads launch in every way at once, into streams, graphs and contexts that come and go:
 *
 *     gating THREADS TURNS SEED
 *
 * Its runner opens and closes the gate meanwhile. Ends with 0 if the driver never answered with an error.
 */
#include "calls.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, LEGACY = 1, PER_THREAD = 2, RELAXED = 2, SHORT_NS = 20000, LONGER_NS = 300000 };

static handle primary, kernel_;
static unsigned turns;

static unsigned roll(unsigned *dice) {
    *dice = *dice * 1664525u + 1013904223u;
    return *dice >> 8;
}

static handle kernel_here(void) {
    handle module, kernel;
    require(cuModuleLoadData(&module, "anything"), "cuModuleLoadData");
    require(cuModuleGetFunction(&kernel, module, "sim_arg"), "cuModuleGetFunction");
    return kernel;
}

static void launch(handle kernel, handle stream, u64 ns) {
    void *parameters[] = {&ns};
    require(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
}

static handle new_stream(unsigned flags) {
    handle stream;
    require(cuStreamCreate(&stream, flags), "cuStreamCreate");
    return stream;
}

static void launch_graph(handle stream) {
    handle graph, executable;
    require(cuStreamBeginCapture(stream, RELAXED), "cuStreamBeginCapture");
    for (int n = 0; n < 3; n++) launch(kernel_, stream, SHORT_NS);
    require(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    require(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    require(cuGraphLaunch(executable, stream), "cuGraphLaunch");
    require(cuGraphDestroy(graph), "cuGraphDestroy");
    require(cuGraphExecDestroy(executable), "cuGraphExecDestroy");
}

static void use_another_context(void) {
    handle context, stream;
    require(cuCtxCreate(&context, 0, 0), "cuCtxCreate");
    handle kernel = kernel_here();
    stream = new_stream(1);
    launch(kernel, stream, SHORT_NS);
    launch(kernel, NULL, SHORT_NS);
    require(cuCtxDestroy(context), "cuCtxDestroy");
    require(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
}

static void use_another_stream(unsigned flags) {
    handle stream = new_stream(flags);
    launch(kernel_, stream, LONGER_NS);
    require(cuStreamDestroy(stream), "cuStreamDestroy");
}

static void *work(void *seed) {
    unsigned dice = (unsigned)(uintptr_t)seed;
    require(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    handle own = new_stream(1);
    for (unsigned turn = 0; turn < turns; turn++) {
        const unsigned way = roll(&dice) % 64;
        if (way == 0)
            use_another_context();
        else if (way < 4)
            use_another_stream(way & 1);
        else if (way < 8)
            launch_graph(own);
        else if (way < 16)
            launch(kernel_, (handle)(uintptr_t)PER_THREAD, SHORT_NS);
        else
            launch(kernel_, own, way % 8 ? SHORT_NS : LONGER_NS);
    }
    require(cuStreamSynchronize(own), "cuStreamSynchronize");
    return NULL;
}

int main(int count, char **words) {
    pthread_t thread[MOST_THREADS];
    if (count != 4) stop_with("gating: see its first comment");
    const unsigned threads = (unsigned)atoi(words[1]), seed = (unsigned)atoi(words[3]);
    turns = (unsigned)atoi(words[2]);
    if (!threads || threads > MOST_THREADS) stop_with("gating: %u are not some threads", threads);
    calls_find();
    require(cuInit(0), "cuInit");
    require(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
    require(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    kernel_ = kernel_here();
    launch(kernel_, (handle)(uintptr_t)LEGACY, SHORT_NS);
    for (unsigned n = 0; n < threads; n++) pthread_create(&thread[n], NULL, work, (void *)(uintptr_t)(seed + n));
    for (unsigned n = 0; n < threads; n++) pthread_join(thread[n], NULL);
    require(cuCtxSynchronize(), "cuCtxSynchronize");
    return 0;
}
