/* Instantiated graphs: executables.c creates and launches them, updates.c changes them. */
#pragma once

#include "graphs.h"

struct step {
    struct task *task;
    const struct cuda_node *node;        /* the node it was made from */
    u32 *before, before_count;      /* steps that it depends on, by number */
    u64 end_ns;                     /* from the graph's beginning */
};

struct cuda_executable {
    u32 magic;
    u64 length_ns;
    struct cuda_graph *graph;            /* a copy of the instantiated graph */
    struct cuda_graph *made_from;        /* the original, if it has memory and still exists */
    struct step *steps;             /* in dependency order */
    u32 count;
    bool calls_host;
    pthread_mutex_t lock;           /* serializes launches */
    struct device *device;          /* of the last launch */
    u64 tail;                       /* end of the last launch: launches of one executable never overlap */
    struct growth *growth;          /* its memory on the device that was current at instantiation */
};

CUresult executable_of(CUgraphExec handle, struct cuda_executable **found);

/* Computes the end of each step, after a task has changed. */
void executable_measure(struct cuda_executable *executable);

/* The steps of a graph; the caller frees them with steps_drop. */
CUresult steps_of(const struct cuda_graph *graph, struct step **steps, u32 *count);
void steps_drop(struct step *steps, u32 count);
