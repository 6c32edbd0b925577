/* Tables of what is above those who use it. */
#include "memory.h"

bool (*const trims[])(const struct device *device) = {graph_memory_trim, pools_trim, NULL};
