/* What libcuda.so.1 does for libnvidia-ml.so.1: one session with the broker, whichever of them a program uses.
 *
 * libcuda.so.1 exports `partage_core`, libnvidia-ml.so.1 finds it at run time (nvml/core.c). Both are of one build and
 * lie in one folder; the size is checked all the same.
 */
#pragma once

#include "hook.h"

/* A process by the pid that the caller's pid namespace knows, and what is charged for it. */
struct partage_process {
    uint32_t pid;
    uint64_t bytes;
};

/* Filled in memory/core.c. */
struct partage_core {
    uint32_t bytes; /* sizeof(struct partage_core) */

    /* Whether there is a session with the broker; waits for it as cuInit does. */
    bool (*start)(void);
    /* The container's number of the card with this UUID; 0xffff for one that it was not granted. */
    unsigned (*card_of)(const unsigned char uuid[16]);
    /* The card as the container has it; false: the broker is away. */
    bool (*view)(unsigned card, uint64_t *limit, uint64_t *used);
    /* Up to `room` of the container's processes on the card; how many there are, or -1: the broker is away. */
    int (*processes)(unsigned card, struct partage_process *list, unsigned room);
};

extern EXPORT const struct partage_core partage_core;
