/* What each process has of each card, to the last byte. */
#pragma once

#include "node.h"

/* Bytes of the card that nobody has. */
u64 account_free(const struct node *node, u32 card);

/* Whether so many bytes are free. */
bool account_has_room(const struct node *node, u32 card, u64 bytes);

/* Bytes of the card are taken and charged to the process. They are there: `account_has_room` was asked. */
void account_take(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes);

/* Bytes are no longer charged to the process; they may still be taken. */
void account_discharge(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes);

/* Bytes of the card are free again. */
void account_return(struct node *node, u32 card, u64 bytes);

/* Tells what the account holds in its row, if it has one. */
void account_show(struct node *node, u32 card, const struct account *account);

/* The process in that row has failed: every call of it answers `result`, and its work is dropped. */
void account_fail(struct node *node, u32 card, u32 row, u32 result);

/* Forgets the greatest use so far. */
void account_reset_peaks(struct node *node);

/* Time that the process in that row has had since it began there. */
u64 account_busy(const struct node *node, u32 card, u32 row);
