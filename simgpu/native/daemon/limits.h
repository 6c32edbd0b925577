/* Control groups' limits on card memory. A limit ends when its group's folder is removed, as in the kernel. */
#pragma once

#include "../common/protocol.h"

#include <sys/queue.h>

struct node;
struct process;

LIST_HEAD(limit_list, limit);

/* UNKNOWN if the descriptor is not a control group's folder. */
enum sim_result limit_set(struct node *node, u32 card, int folder, u64 bytes);

/* Whether all limits that apply to the process allow that many more bytes. */
bool limits_allow(struct node *node, u32 card, const struct process *process, u64 bytes);
