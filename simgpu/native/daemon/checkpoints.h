/* Checkpoint and restore of processes by other processes, step by step. */
#pragma once

#include "node.h"

/* The process with that pid in the caller's namespace, if it has a context; else NULL. */
struct process *checkpoint_process(const struct node *node, const struct process *caller, u64 pid);

/* SIM_MISUSED: wrong state; SIM_REFUSED, SIM_NO_MEMORY: nothing changed. */
enum sim_result checkpoint_step(struct node *node, struct process *process, u32 step);

/* One of the cards on which it has a context. */
u32 checkpoint_card(const struct node *node, const struct process *process);
