/* `create` and `run`: where a container gets what it asks for, or is refused. */
#pragma once

#include "arguments.h"
#include "settings.h"

/* Returns the runtime to execute. */
const char *create(const struct call *call, const struct settings *settings);
