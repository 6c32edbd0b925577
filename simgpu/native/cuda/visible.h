/* Which cards are a process's devices, and their order. */
#pragma once

#include "../common/connection.h"

/* The driver's rules: device nodes in its root, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, and one MIG instance or whole
 * cards, never both. Stores indices in the node file and returns how many. Depends only on the environment and
 * sim_visible. */
u32 visible_cards(const struct sim_node *node, u32 cards[SIM_CARDS]);
