/* `create` and `run`: the one place at which a container gets what it asks for, or does not begin. */
#pragma once

#include "arguments.h"
#include "settings.h"

/* The runtime that goes on. */
const char *create(const struct call *call, const struct settings *settings);
