/* Reads the cheap clock repeatedly beside the real one, from two threads. Prints how often it lagged, and how often it
 * had a value. */
#include "../../../simgpu/native/cuda/ticks.h"

#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 400, EACH = 2000 };

static struct ticks ticks;
static _Atomic u64 too_little, said;

static void *ask(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < EACH; n++) {
            u64 before = sim_now(), latest = ticks_latest(&ticks);
            if (latest < before) too_little++;
            if (latest != UINT64_MAX) said++;
        }
        ticks_now(&ticks);
    }
    return NULL;
}

int main(void) {
    pthread_t other;
    ticks_begin(&ticks);
    pthread_create(&other, NULL, ask, NULL);
    ask(NULL);
    pthread_join(other, NULL);
    printf("%lu %lu %d\n", too_little, said, ticks.usable);
}
