/* Tables through which lower files call higher ones. */
#include "memory.h"

bool (*const trims[])(const struct device *device) = {graph_memory_trim, pools_trim, NULL};
