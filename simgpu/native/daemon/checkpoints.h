/* Processes that are taken from their cards by others and brought back, step by step. */
#pragma once

#include "node.h"

/* The process that the caller's pid namespace has under that number, if it has a context; else NULL. */
struct process *checkpoint_process(const struct node *node, const struct process *caller, u64 pid);

/* SIM_MISUSED: not in that state; SIM_REFUSED, SIM_NO_MEMORY: nothing changed. */
enum sim_result checkpoint_step(struct node *node, struct process *process, u32 step);

/* One of the cards that it has a context on. */
u32 checkpoint_card(const struct node *node, const struct process *process);
