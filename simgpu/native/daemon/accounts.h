/* What each process has of each card: contexts, its row, and bytes to the last one. */
#pragma once

#include "node.h"

/* Whether so many bytes are free. */
bool account_has_room(const struct node *node, u32 card, u64 bytes);

/* Bytes of the card are taken and charged to the process. They are there: `account_has_room` was asked. */
void account_take(struct node *node, u32 card, struct process *process, u64 bytes);

/* Bytes are no longer charged to the process; they may still be taken. */
void account_discharge(struct node *node, u32 card, struct process *process, u64 bytes);

/* Bytes of the card are free again. */
void account_return(struct node *node, u32 card, u64 bytes);

/* Another context of the process. */
enum sim_result account_attach(struct node *node, u32 card, struct process *process);

/* One less; with the last one its row and the bytes of the context go. */
enum sim_result account_detach(struct node *node, u32 card, struct process *process);

/* All contexts of the process go, on all cards, and all that it holds. */
void account_forget(struct node *node, struct process *process);

/* The process in that row has failed: every call of it answers `result`, and its work is dropped. */
void account_fail(struct node *node, u32 card, u32 row, u32 result);

/* Forgets the greatest use so far. */
void account_reset_peaks(struct node *node);

/* Time that the process in that row has had since it began there. */
u64 account_busy(const struct node *node, u32 card, u32 row);
