/* Graphs: what graphs.c, nodes.c, executables.c and capture.c share. */
#pragma once

#include "functions.h"

enum { GRAPH_MAGIC = 0x67726170, NODE_MAGIC = 0x6e6f6465, EXECUTABLE_MAGIC = 0x65786563 };

/* Work with what made it, shared by a node, its copies in clones and the executables; counted. */
struct task {
    _Atomic u32 references;
    struct work work;
    struct cuda_function *function;      /* NODE_KERNEL */
    struct shape shape;
    CUhostFn call;                  /* NODE_HOST */
    void *data;
    struct cuda_event *event;            /* NODE_WAIT_EVENT, NODE_RECORD_EVENT */
    struct cuda_graph *child;            /* NODE_CHILD: its own */
    CUDA_MEM_ALLOC_NODE_PARAMS allocates; /* NODE_ALLOC: its parameters, for who asks */
};

struct cuda_node {
    u32 magic;
    struct cuda_graph *graph;
    struct task *task;
    struct nodes before; /* what it depends on */
    struct cuda_node *copy_of; /* in the graph that this one is a clone of */
    size_t index; /* for those who walk over the graph */
};

struct cuda_graph {
    u32 magic;
    bool owned; /* by a node that has it as its child */
    struct nodes nodes; /* in the order of their making */
    struct cuda_graph **instance; /* of a graph with memory: where the one executable that there may be refers to it */
};

CUresult graph_of(CUgraph handle, struct cuda_graph **found);
CUresult node_of(CUgraphNode handle, struct cuda_node **found);
CUresult graph_new(struct cuda_graph **made);
CUresult graph_clone(const struct cuda_graph *graph, struct cuda_graph **made);
void graph_drop(struct cuda_graph *graph);

/* Such a graph is bound to its addresses: it can't be cloned, cut or instantiated twice at once. */
bool graph_has_memory(const struct cuda_graph *graph);

/* A node with `task`, whose reference passes to it, even on failure. */
CUresult graph_add(struct cuda_graph *graph, const struct nodes *before, struct task *task, struct cuda_node **made);

/* The nodes in an order in which each comes after what it depends on, in `order`, an array for all of them;
 * CUDA_ERROR_INVALID_VALUE if they go round in a circle. */
CUresult graph_sort(const struct cuda_graph *graph, struct cuda_node **order);

/* Tasks; NULL without memory, which graph_add answers. The last one is a clone of `child`. */
struct task *task_new(const struct work *work);
struct task *task_of_kind(enum node_kind kind);
struct task *task_kernel(struct cuda_function *function, const struct shape *shape, u64 duration_ns);
struct task *task_host(CUhostFn call, void *data);
struct task *task_event(enum node_kind kind, struct cuda_event *event);
struct task *task_of_child(const struct cuda_graph *child);
struct task *task_keep(struct task *task);
void task_drop(struct task *task);

bool nodes_has(const struct nodes *nodes, const struct cuda_node *node);
CUresult nodes_add(struct nodes *nodes, struct cuda_node *node);
CUresult nodes_add_all(struct nodes *nodes, const struct nodes *more);
void nodes_remove(struct nodes *nodes, const struct cuda_node *node);
void nodes_clear(struct nodes *nodes);

/* Copies nodes out as the driver does: only the number if there is no array; NULL beyond the end of a longer one. */
CUresult nodes_answer(const struct nodes *nodes, CUgraphNode *out, size_t *count);
