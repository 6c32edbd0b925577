/* Integer types and the clock used by every file of the simulation. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define SIM_NS_PER_S 1000000000ull
#define SIM_MIB (1ull << 20)

/* CLOCK_MONOTONIC in nanoseconds: the only clock used, identical in all processes of a machine. */
static inline u64 sim_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * SIM_NS_PER_S + (u64)t.tv_nsec;
}
