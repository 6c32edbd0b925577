/* The node that simgpud simulates: its two memory files, and the tables behind them. Single-threaded, so no lock. */
#pragma once

#include "config.h"
#include "limits.h"
#include "loop.h"
#include "pieces.h"
#include "processes.h"

#define NODE_FILE_NAME "simgpu-node"
#define LINES_FILE_NAME "simgpu-timelines"

struct node {
    int loop;
    bool stop;
    int file_fd, lines_fd;
    struct sim_node_file *file; /* readable by libraries */
    struct sim_timeline *lines; /* [file->cards]; processes may write anything there */
    u32 to_fail[SIM_CARDS];     /* number of coming takes that are made to fail */
    struct process *in_row[SIM_CARDS][SIM_ROWS];
    struct piece_table pieces;
    struct process_list processes;
    struct limit_list limits;
    u32 process_count, client_count;
    u32 most_of_a_kind; /* processes, clients, kept descriptors: each uses one of simgpud's descriptors */
};

/* Creates the files of a node. 0, or -1 and errno with nothing changed. */
int node_open(struct node *node, const struct config *config);

/* Publishes the final state to processes that still map the files, and releases the files. */
void node_close(struct node *node);

/* Changes the state and wakes its waiters. */
void node_state(struct node *node, enum sim_node_state state);

/* Records an event for NVML to report. */
void node_tell(struct node *node, u32 card, u64 type, u64 data);

/* Advances a card to the current time. */
void node_advance(struct node *node, u32 card);

/* Sets a word of the node file and wakes all its waiters. */
void set_and_wake(_Atomic u32 *word, u32 value);
