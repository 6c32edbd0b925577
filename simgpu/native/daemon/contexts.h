/* Contexts of processes: a process's first context on a card assigns it a row there. */
#pragma once

#include "node.h"

/* Adds a context of the process. */
enum sim_result context_attach(struct node *node, u32 card, struct process *process);

/* Removes a context; with the last one its row and the context's bytes are released. */
enum sim_result context_detach(struct node *node, u32 card, struct process *process);

/* Removes all contexts of the process on all cards, and everything that it holds. */
void contexts_forget(struct node *node, struct process *process);
