/* Contexts of processes: with its first one on a card a process gets a row there. */
#pragma once

#include "node.h"

/* Another context of the process. */
enum sim_result context_attach(struct node *node, u32 card, struct process *process);

/* One less; with the last one its row and the bytes of the context go. */
enum sim_result context_detach(struct node *node, u32 card, struct process *process);

/* All contexts of the process go, on all cards, and all that it holds. */
void contexts_forget(struct node *node, struct process *process);
