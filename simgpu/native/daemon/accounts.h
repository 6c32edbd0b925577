/* Accounting of each process's memory on each card, to the byte. */
#pragma once

#include "node.h"

/* Free bytes of the card. */
u64 account_free(const struct node *node, u32 card);

/* Whether that many bytes are free. */
bool account_has_room(const struct node *node, u32 card, u64 bytes);

/* Takes bytes of the card and charges them to the process. The caller has checked `account_has_room`. */
void account_take(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes);

/* Bytes are no longer charged to the process, but may still be taken. */
void account_discharge(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes);

/* Frees bytes of the card. */
void account_return(struct node *node, u32 card, u64 bytes);

/* Publishes the account in its row, if it has one. */
void account_show(struct node *node, u32 card, const struct account *account);

/* Marks the process in that row as failed: every call of it returns `result`, and its work is dropped. */
void account_fail(struct node *node, u32 card, u32 row, u32 result);

/* Resets the recorded maximum use. */
void account_reset_peaks(struct node *node);

/* Time that the process in that row has received since it started there. */
u64 account_busy(const struct node *node, u32 card, u32 row);
