/* Instantiated graphs: executables.c makes and launches them, updates.c changes them. */
#pragma once

#include "graphs.h"

struct step {
    struct task *task;
    const struct cuda_node *node;        /* that it was made from */
    u32 *before, before_count;      /* steps that it comes after, by number */
    u64 end_ns;                     /* after the graph's beginning */
};

struct cuda_executable {
    u32 magic;
    u64 length_ns;
    struct cuda_graph *graph;            /* a copy of what was instantiated */
    struct cuda_graph *made_from;        /* what was, if it has memory and is still there */
    struct step *steps;             /* each after those that it comes after */
    u32 count;
    bool calls_host;
    pthread_mutex_t lock;           /* one launch at a time */
    struct device *device;          /* of the last launch, */
    u64 tail;                       /* which ends there: launches of one executable never overlap */
    struct growth *growth;          /* what it takes of the device that was current when it was made */
};

CUresult executable_of(CUgraphExec handle, struct cuda_executable **found);

/* Computes when each step ends, after a task has changed. */
void executable_measure(struct cuda_executable *executable);

/* The steps of a graph; the caller frees them with steps_drop. */
CUresult steps_of(const struct cuda_graph *graph, struct step **steps, u32 *count);
void steps_drop(struct step *steps, u32 count);
