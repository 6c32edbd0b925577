/* Measures the library's cost to a program. Each measurement ends with a line of JSON with the times of every round, in
 * nanoseconds: of the driver itself and of the same call through the library found as libcuda.so.1, in turns, in one
 * process.
 *
 *   measure memory DRIVER MIB ROUNDS EACH      cuMemAlloc and cuMemFree; medians of EACH calls
 *   measure unmetered DRIVER ROUNDS EACH       cuDriverGetVersion, which is not metered; means of EACH calls
 *   measure start PRELOADED ROUNDS EACH        from the start to the end of a program that uses no CUDA; medians
 *
 * DRIVER is a path of the real libcuda.so.1 under another name, PRELOADED the value of LD_PRELOAD.
 */
#include "calls.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_EACH = 100000, SIDES = 2, DRIVER = 0, CALLED = 1 };

struct side {
    __typeof__(cuMemAlloc_v2) *alloc;
    __typeof__(cuMemFree_v2) *free;
    __typeof__(cuDriverGetVersion) *version;
};

static struct side side[SIDES];

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, u64 count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static void tell(const char *name, double rounds[][SIDES], u64 count) {
    for (int which = 0; which < SIDES; which++) {
        printf("%s\"%s_%s\":[", which ? "," : "", name, which == DRIVER ? "driver" : "called");
        for (u64 i = 0; i < count; i++) printf("%s%.2f", i ? "," : "", rounds[i][which]);
        printf("]");
    }
}

/* ---- calls of the driver ------------------------------------------------------------------------------------------
 */

static void find_sides(const char *path) {
    const char *paths[SIDES] = {path, "libcuda.so.1"};
    for (int which = SIDES - 1; which >= 0; which--) {
        void *library = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
        *(void **)&side[which].alloc = found(library, "cuMemAlloc_v2");
        *(void **)&side[which].free = found(library, "cuMemFree_v2");
        *(void **)&side[which].version = found(library, "cuDriverGetVersion");
    }
}

static void tell_total(void) {
    size_t unused, total;
    open_card();
    NEED(cuMemGetInfo_v2, &unused, &total);
    printf("{\"total\":%zu,", total);
}

/* A first line, by which its runner checks the setup; it goes on when it reads a line. If one object provides both
 * functions, nothing is between the program and the driver. */
static void tell_engaged(void) {
    const bool interposed = (void *)side[DRIVER].alloc != (void *)side[CALLED].alloc;
    printf("\"pid\":%d,\"interposed\":%s}\n", (int)getpid(), interposed ? "true" : "false");
    fflush(stdout);
    while (getchar() != '\n') continue;
    printf("{");
}

/* Medians of one round. */
struct memory_times {
    double (*alloc)[SIDES], (*free)[SIDES];
    double (*again)[SIDES]; /* an alloc right after a free, which the broker still records at that moment */
};

static double one_alloc(const struct side *one, u64 bytes, CUdeviceptr *address) {
    const double start = now_ns();
    require(one->alloc(address, bytes), "cuMemAlloc");
    return now_ns() - start;
}

static double one_free(const struct side *one, CUdeviceptr address) {
    const double start = now_ns();
    require(one->free(address), "cuMemFree");
    return now_ns() - start;
}

static void memory_round(u64 which, u64 bytes, u64 each, const struct memory_times *times, u64 round) {
    static double allocs[MOST_EACH], frees[MOST_EACH];
    static CUdeviceptr addresses[MOST_EACH];
    const struct side *one = &side[which];
    for (u64 i = 0; i < each; i++) allocs[i] = one_alloc(one, bytes, &addresses[i]);
    for (u64 i = 0; i < each; i++) frees[i] = one_free(one, addresses[i]);
    times->alloc[round][which] = median(allocs, each);
    times->free[round][which] = median(frees, each);
    for (u64 i = 0; i < each; i++) {
        allocs[i] = one_alloc(one, bytes, &addresses[i]);
        one_free(one, addresses[i]);
    }
    times->again[round][which] = median(allocs, each);
}

static void measure_memory(u64 bytes, u64 rounds, u64 each) {
    const struct memory_times times = {calloc(rounds, sizeof *times.alloc), calloc(rounds, sizeof *times.free),
                                       calloc(rounds, sizeof *times.again)};
    if (!times.alloc || !times.free || !times.again) stop_with("no memory");
    for (u64 round = 0; round < rounds; round++)
        for (u64 turn = 0; turn < SIDES; turn++) memory_round((round + turn) % SIDES, bytes, each, &times, round);
    tell("alloc", times.alloc, rounds);
    printf(",");
    tell("free", times.free, rounds);
    printf(",");
    tell("again", times.again, rounds);
}

static double unmetered_round(const struct side *one, u64 each) {
    int version;
    const double start = now_ns();
    for (u64 i = 0; i < each; i++) one->version(&version);
    return (now_ns() - start) / (double)each;
}

static void measure_unmetered(u64 rounds, u64 each) {
    double (*means)[SIDES] = calloc(rounds, sizeof *means);
    if (!means) stop_with("no memory");
    for (u64 round = 0; round < rounds; round++)
        for (u64 turn = 0; turn < SIDES; turn++)
            means[round][(round + turn) % SIDES] = unmetered_round(&side[(round + turn) % SIDES], each);
    tell("version", means, rounds);
}

/* ---- starting programs --------------------------------------------------------------------------------------------
 */

static double start_round(char *const environment[], u64 each) {
    static double times[MOST_EACH];
    char path[] = "/proc/self/exe", word[] = "nothing";
    char *const words[] = {path, word, NULL};
    for (u64 i = 0; i < each; i++) {
        pid_t child;
        int status;
        const double start = now_ns();
        if (posix_spawn(&child, path, NULL, NULL, words, environment)) stop_with("cannot start a program");
        waitpid(child, &status, 0);
        times[i] = now_ns() - start;
        if (status) stop_with("a program ended with %d", status);
    }
    return median(times, each);
}

static void measure_start(const char *preloaded, u64 rounds, u64 each) {
    static char variable[4096];
    char *const plain[] = {NULL}, *const with[] = {variable, NULL};
    double (*medians)[SIDES] = calloc(rounds, sizeof *medians);
    if (!medians) stop_with("no memory");
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preloaded);
    for (u64 round = 0; round < rounds; round++)
        for (u64 turn = 0; turn < SIDES; turn++) {
            const u64 which = (round + turn) % SIDES;
            medians[round][which] = start_round(which == DRIVER ? plain : with, each);
        }
    tell("start", medians, rounds);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "nothing")) return 0;
    if (!strcmp(what, "memory") && count == 6) {
        tell_total();
        find_sides(words[2]);
        tell_engaged();
        measure_memory(number(words[3], 1 << 20) * MIB, number(words[4], 1000), number(words[5], MOST_EACH));
    } else if (!strcmp(what, "unmetered") && count == 5) {
        tell_total();
        find_sides(words[2]);
        tell_engaged();
        measure_unmetered(number(words[3], 1000), number(words[4], 10 * MIB));
    } else if (!strcmp(what, "start") && count == 5) {
        printf("{");
        measure_start(words[2], number(words[3], 1000), number(words[4], MOST_EACH));
    } else {
        stop_with("measure: see its first comment");
    }
    printf("}\n");
    return 0;
}
