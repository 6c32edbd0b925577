/* Which cards a process counts as its devices, and in what order. */
#pragma once

#include "../common/connection.h"

/* The rules of the driver: device nodes in its root, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, and one MIG instance or
 * whole cards, never both. Indices in the node file; how many. Pure but for the environment and sim_visible. */
u32 visible_cards(const struct sim_node *node, u32 cards[SIM_CARDS]);
