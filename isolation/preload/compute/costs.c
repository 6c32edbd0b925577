/* What launches take of the card's time. */
#include "compute.h"

static struct table graphs; /* entry.bytes: nanoseconds of one launch */

/* One that was wrong by much is right after a few. */
uint64_t cost_mixed(uint64_t before, uint64_t sample) {
    if (!sample) sample = 1;
    return before ? before + sample / 4 - before / 4 : sample;
}

uint64_t cost_of(CUgraphExec graph) {
    struct entry entry;
    return table_get(&graphs, (uint64_t)graph, &entry) ? entry.bytes : 0;
}

/* Without room for it a graph costs what it did the first time: nobody knows. */
void cost_learn(CUgraphExec graph, uint64_t ns) {
    struct entry entry = {.key = (uint64_t)graph, .times = 1}, before;
    entry.bytes = cost_mixed(cost_of(graph), ns);
    table_put(&graphs, &entry, &before);
}

void costs_forget(CUgraphExec graph) {
    struct entry entry;
    if (!table_is_empty(&graphs)) table_take(&graphs, (uint64_t)graph, &entry);
}

void costs_forget_all(void) { table_forget(&graphs); }
