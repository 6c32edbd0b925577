/* `hook KEY`, which the runtime runs as a container with a claim begins: tells the broker, or keeps it from beginning.
 */
#pragma once

#include "settings.h"

/* The exit status. The container's state comes from stdin. */
int hook(const char *key, const struct settings *settings);
