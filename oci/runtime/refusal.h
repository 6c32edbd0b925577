/* How a container is refused: one sentence in the log that the engine reads, the same on stderr, and status 1. */
#pragma once

#include "arguments.h"

/* `call` says which log; NULL: none. */
__attribute__((noreturn, format(printf, 2, 3))) void refuse(const struct call *call, const char *format, ...);
