/* Takes a card's time until it is killed, and says how far the card is:
 *
 *   flood HOW KERNEL_US ROUNDS_PER_US [DRIVER]
 *
 *   queue      launches without ever waiting
 *   wait       waits for each kernel
 *   legacy     launches without waiting into the legacy stream, beside a stream that blocks it
 *   dependent  launches without waiting, each kernel allowed to begin before the one before it ends
 *   captured   as legacy, and a capture of a side stream was begun before and is never ended
 *   past       as queue, in a context that was made by the library at DRIVER
 *   calibrate  no flood: prints the rounds that a microsecond has when the card does nothing else
 *
 * ROUNDS_PER_US is what `calibrate` printed; 0: kernels spin by the clock. Each tenth of a second it prints a line: the
 * monotonic clock in seconds, and how many kernels the card has done.
 */
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = 64, MOST_UNMARKED = 64 };

static const double SAID_EVERY_S = .1, MARKED_EVERY_S = .002;

/* Events in a ring, each behind so many kernels. */
static struct {
    CUevent event[MARKS];
    u64 kernels[MARKS], made, reached, done;
} marks;

static void mark(CUstream stream, u64 kernels) {
    if (marks.made - marks.reached == MARKS) NEED(cuEventSynchronize, marks.event[marks.reached % MARKS]);
    while (marks.reached < marks.made) {
        static __typeof__(cuEventQuery) *query;
        if (!query) query = (__typeof__(cuEventQuery) *)driver_symbol("cuEventQuery");
        const CUresult result = query(marks.event[marks.reached % MARKS]);
        if (result == CUDA_ERROR_NOT_READY) break;
        require(result, "cuEventQuery");
        marks.done = marks.kernels[marks.reached++ % MARKS];
    }
    if (marks.made - marks.reached == MARKS) return;
    marks.kernels[marks.made % MARKS] = kernels;
    NEED(cuEventRecord, marks.event[marks.made++ % MARKS], stream);
}

static CUresult launch_dependent(const struct kernel *kernel, CUstream stream) {
    static __typeof__(cuLaunchKernelEx) *function;
    if (!function) function = (__typeof__(cuLaunchKernelEx) *)driver_symbol("cuLaunchKernelEx");
    CUlaunchAttribute early = {.id = 6 /* programmatic stream serialization */, .value = {1}};
    const CUlaunchConfig config = {
        .shape = {{1, 1, 1}, {32, 1, 1}, 0}, .stream = stream, .attributes = &early, .attribute_count = 1};
    return function(&config, kernel->function, PARAMETERS(kernel), NULL);
}

static void calibrate(void) {
    const u64 rounds = 2000000, told_ns = 20000000;
    const struct kernel kernel = kernel_of(told_ns, rounds);
    CUevent from, to;
    float ms = 0;
    NEED(cuEventCreate, &from, 0);
    NEED(cuEventCreate, &to, 0);
    for (int i = 0; i < 20; i++) { /* the first ones let the clock of the card rise */
        NEED(cuEventRecord, from, NULL);
        require(launch(&kernel, NULL), "cuLaunchKernel");
        NEED(cuEventRecord, to, NULL);
        NEED(cuEventSynchronize, to);
        NEED(cuEventElapsedTime, &ms, from, to);
    }
    printf("%.3f\n", (double)rounds / ((double)ms * 1e3));
}

int main(int count, char **words) {
    if (count < 2) stop_with("flood: see its first comment");
    const char *how = words[1];
    open_card(!strcmp(how, "past") && count > 4 ? words[4] : NULL);
    if (!strcmp(how, "calibrate")) return calibrate(), 0;
    if (count < 4) stop_with("flood: see its first comment");
    const double kernel_us = strtod(words[2], NULL), rounds_per_us = strtod(words[3], NULL);
    const bool wait = !strcmp(how, "wait"), captured = !strcmp(how, "captured"), dependent = !strcmp(how, "dependent");
    const bool legacy = captured || !strcmp(how, "legacy");
    const struct kernel kernel = kernel_of((u64)(kernel_us * 1e3), (u64)(kernel_us * rounds_per_us));
    CUstream stream, side;
    NEED(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    NEED(cuStreamCreate, &side, captured ? CU_STREAM_NON_BLOCKING : 0);
    if (captured) NEED(cuStreamBeginCapture_v2, side, CAPTURE_RELAXED);
    if (legacy) stream = CU_STREAM_LEGACY;
    for (int i = 0; i < MARKS; i++) NEED(cuEventCreate, &marks.event[i], CU_EVENT_DISABLE_TIMING);
    double said = 0, marked = 0;
    for (u64 kernels = 0, unmarked = 0;;) {
        require(dependent ? launch_dependent(&kernel, stream) : launch(&kernel, stream), "a launch");
        if (legacy && !captured && kernels % 16 == 0) require(launch(&kernel, side), "a launch beside it"), kernels++;
        kernels++;
        if (wait) NEED(cuStreamSynchronize, stream);
        const double now = now_s();
        if (++unmarked >= MOST_UNMARKED || now - marked > MARKED_EVERY_S)
            mark(stream, kernels), unmarked = 0, marked = now;
        if (now - said < SAID_EVERY_S) continue;
        said = now;
        printf("%.6f %llu\n", now, (unsigned long long)(wait ? kernels : marks.done));
        if (fflush(stdout)) return 0;
    }
}
