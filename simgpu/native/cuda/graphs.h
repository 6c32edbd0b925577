/* Graphs: shared by graphs.c, nodes.c, executables.c and capture.c. */
#pragma once

#include "functions.h"

enum { GRAPH_MAGIC = 0x67726170, NODE_MAGIC = 0x6e6f6465, EXECUTABLE_MAGIC = 0x65786563 };

/* Work with its origin, shared by a node, its copies in clones and the executables; reference counted. */
struct task {
    _Atomic u32 references;
    struct work work;
    struct cuda_function *function;      /* NODE_KERNEL */
    struct shape shape;
    CUhostFn call;                  /* NODE_HOST */
    void *data;
    struct cuda_event *event;            /* NODE_WAIT_EVENT, NODE_RECORD_EVENT */
    struct cuda_graph *child;            /* NODE_CHILD: owned */
    CUDA_MEM_ALLOC_NODE_PARAMS allocates; /* NODE_ALLOC: its parameters, for queries */
};

struct cuda_node {
    u32 magic;
    struct cuda_graph *graph;
    struct task *task;
    struct nodes before; /* its dependencies */
    struct cuda_node *copy_of; /* in the graph that this one is a clone of */
    size_t index; /* scratch, for traversals */
};

struct cuda_graph {
    u32 magic;
    bool owned; /* by the node whose child it is */
    struct nodes nodes; /* in order of creation */
    struct cuda_graph **instance; /* of a graph with memory: the reference held by its only executable */
};

CUresult graph_of(CUgraph handle, struct cuda_graph **found);
CUresult node_of(CUgraphNode handle, struct cuda_node **found);
CUresult graph_new(struct cuda_graph **made);
CUresult graph_clone(const struct cuda_graph *graph, struct cuda_graph **made);
void graph_drop(struct cuda_graph *graph);

/* Such a graph is bound to its addresses: it cannot be cloned, split or instantiated twice at once. */
bool graph_has_memory(const struct cuda_graph *graph);

/* A node with `task`, whose reference is transferred, even on failure. */
CUresult graph_add(struct cuda_graph *graph, const struct nodes *before, struct task *task, struct cuda_node **made);

/* The nodes in dependency order, stored in `order`, an array for all of them; CUDA_ERROR_INVALID_VALUE if there is a
 * cycle. */
CUresult graph_sort(const struct cuda_graph *graph, struct cuda_node **order);

/* Tasks; NULL without memory, which graph_add reports. The last one is a clone of `child`. */
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

/* Copies nodes out as the driver does: only the number if there is no array; NULL beyond the end in a longer one. */
CUresult nodes_answer(const struct nodes *nodes, CUgraphNode *out, size_t *count);
