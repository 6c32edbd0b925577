/* What goes wrong on demand, and whom it hits. */
#pragma once

#include "node.h"

/* The card is lost, with all instances of it: its time stands, its processes fail, nothing can be taken. */
void fault_lose(struct node *node, u32 card, u32 xid);

/* It is back, as after a reset; those who were hit stay so. */
void fault_restore(struct node *node, u32 card);

/* An XID and what it does. `process` is whose fault it is; NULL: everybody's on that card. */
void fault_xid(struct node *node, u32 card, u32 xid, const struct process *process);

/* What NVML does not tell of the card from now on, and of its instances. */
void fault_blind(struct node *node, u32 card, enum sim_blindness blind);

/* The next kernel of `process`, or of each process on the card, never ends. */
void fault_stick(struct node *node, u32 card, const struct process *process);

/* So many more errors of memory. */
void fault_ecc(struct node *node, u32 card, bool corrected, u64 count);
