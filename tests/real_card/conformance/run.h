/* The interface between run.c and tell.c. */
#pragma once

/* The last fact of every case, whatever its result. */
#define OUTCOME "outcome"

/* From now on this process prints facts of this case. */
void begin_case(const char *name);
