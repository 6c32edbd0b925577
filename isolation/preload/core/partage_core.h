/* Interface that libcuda.so.1 offers to libnvidia-ml.so.1, so that a process has one session with the broker,
 * regardless of which library it uses.
 *
 * libcuda.so.1 exports `partage_core`; libnvidia-ml.so.1 looks it up at run time (nvml/hooks/container.c). Both are of
 * one build and in one folder; the size is checked all the same.
 */
#pragma once

#include "hook.h"

/* A process, by its pid in the caller's pid namespace, and the bytes charged for it. */
struct partage_process {
    uint32_t pid;
    uint64_t bytes;
};

/* Defined in hooks/view.c. */
struct partage_core {
    uint32_t bytes; /* sizeof(struct partage_core) */

    /* Whether there is a session with the broker; waits for one as cuInit does. */
    bool (*start)(void);
    /* The container's number for the card with this UUID; 0xffff if it was not granted. */
    unsigned (*card_of)(const unsigned char uuid[16]);
    /* The container's memory limit and use on the card; false if the broker is unavailable. */
    bool (*view)(unsigned card, uint64_t *limit, uint64_t *used);
    /* Lists up to `room` of the container's processes on the card. Returns how many there are in all, or -1 if the
     * broker is unavailable. */
    int (*processes)(unsigned card, struct partage_process *list, unsigned room);
};

extern EXPORT const struct partage_core partage_core;
