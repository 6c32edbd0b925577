/* Refuses a container: one sentence in the log that the engine reads, the same on stderr, and exit status 1. */
#pragma once

#include "arguments.h"

/* `call` has the path of the log; NULL: no log. */
__attribute__((noreturn, format(printf, 2, 3))) void refuse(const struct call *call, const char *format, ...);
