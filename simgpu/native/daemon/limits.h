/* What control groups may have of cards. A limit ends with its group's folder, as in the kernel. */
#pragma once

#include "../common/protocol.h"

#include <sys/queue.h>

struct node;
struct process;

LIST_HEAD(limit_list, limit);

/* UNKNOWN where the descriptor is no folder of a control group. */
enum sim_result limit_set(struct node *node, u32 card, int folder, u64 bytes);

/* Whether all groups that the process is in may have so much more. */
bool limits_allow(struct node *node, u32 card, const struct process *process, u64 bytes);
