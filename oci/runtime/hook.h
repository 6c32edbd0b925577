/* `hook KEY`, which the runtime runs when a container with a claim starts: registers it with the broker, or stops its
 * start. */
#pragma once

#include "settings.h"

/* Returns the exit status. The container's state is read from stdin. */
int hook(const char *key, const struct settings *settings);
