/* A process that computes on a timeline until it is killed: repeatedly publishes a little work and advances. */
#include "timeline.h"

#include <stdlib.h>
#include <sys/mman.h>

const size_t timeline_bytes = sizeof(struct sim_timeline);

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int fd = atoi(arguments[1]);
    u32 row = (u32)atoi(arguments[2]);
    struct sim_timeline *line = mmap(NULL, sizeof *line, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (line == MAP_FAILED) return 1;
    for (u64 n = 0;; n++) {
        sim_advance(line, row, sim_now());
        u64 received = sim_share_of(line, row, NULL).received;
        u64 published = atomic_load_explicit(&line->row[row].published, memory_order_relaxed);
        u64 start = received > published ? received : published;
        if (start < received + SIM_SLICE_NS)
            atomic_store_explicit(&line->row[row].published, start + n % 50000, memory_order_release);
    }
}
