/* Fault injection, and which processes each fault affects. */
#pragma once

#include "node.h"

/* Loses the card with all its instances: its time stops, its processes fail, nothing can be taken. */
void fault_lose(struct node *node, u32 card, u32 xid);

/* Restores it, as after a reset; affected processes stay failed. */
void fault_restore(struct node *node, u32 card);

/* Reports an XID and applies its effect. `process` caused it; NULL: every process on that card. */
void fault_xid(struct node *node, u32 card, u32 xid, const struct process *process);

/* Sets what NVML withholds about the card and its instances. */
void fault_blind(struct node *node, u32 card, enum sim_blindness blind);

/* The next kernel of `process`, or of each process on the card, never ends. */
void fault_stick(struct node *node, u32 card, const struct process *process);

/* Adds memory errors. */
void fault_ecc(struct node *node, u32 card, bool corrected, u64 count);
