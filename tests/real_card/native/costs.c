/* Measures a launch's cost to its thread: directly at the driver and by the library with its name, in turns.
 *
 *   costs kernel|graph DRIVER ROUNDS
 *
 * Prints a line of JSON with the means of each round, in nanoseconds of the thread's own time. All launches complete
 * between the rounds, so no queue is ever full.
 */
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, EACH = 100, MOST_ROUNDS = 20000 };

static const char *const sides[SIDES] = {"driver", "called"};
static double means[SIDES][MOST_ROUNDS];

static CUgraphExec graph_of(const struct kernel *kernel, CUstream stream) {
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_THREAD_LOCAL);
    require(launch(kernel, stream), "a captured launch");
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

int main(int count, char **words) {
    if (count != 4) stop_with("costs: see its first comment");
    const unsigned rounds = (unsigned)atoi(words[3]);
    if (!rounds || rounds > MOST_ROUNDS) stop_with("costs: %s: 1 to %d rounds", words[3], MOST_ROUNDS);
    open_card(NULL);
    const struct kernel kernel = kernel_of(1000, 0);
    CUstream stream;
    NEED(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const CUgraphExec graph = strcmp(words[1], "graph") ? NULL : graph_of(&kernel, stream);
    const char *const paths[SIDES] = {words[2], NULL};
    __typeof__(cuLaunchKernel) *launches[SIDES];
    __typeof__(cuGraphLaunch) *graphs[SIDES];
    for (int side = 0; side < SIDES; side++) {
        launches[side] = (__typeof__(cuLaunchKernel) *)symbol_in(paths[side], "cuLaunchKernel");
        graphs[side] = (__typeof__(cuGraphLaunch) *)symbol_in(paths[side], "cuGraphLaunch");
    }
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned turn = 0; turn < SIDES; turn++) {
            const unsigned side = (round + turn) % SIDES;
            CUresult wrong = 0;
            const double start = own_cpu_s();
            for (int i = 0; i < EACH; i++)
                wrong |= graph
                             ? graphs[side](graph, stream)
                             : launches[side](kernel.function, 1, 1, 1, 32, 1, 1, 0, stream, PARAMETERS(&kernel), NULL);
            means[side][round] = (own_cpu_s() - start) * 1e9 / EACH;
            require(wrong, "a launch");
            NEED(cuStreamSynchronize, stream);
        }
    printf("{\"interposed\":%s", launches[0] != launches[1] ? "true" : "false");
    for (int side = 0; side < SIDES; side++) {
        printf(",\"%s\":[", sides[side]);
        for (unsigned round = 0; round < rounds; round++) printf("%s%.1f", round ? "," : "", means[side][round]);
        printf("]");
    }
    puts("}");
    return 0;
}
