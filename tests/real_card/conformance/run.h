/* Between run.c and tell.c. */
#pragma once

/* The fact that every case tells last, whatever became of it. */
#define OUTCOME "outcome"

/* From now on this process tells facts of this case. */
void begin_case(const char *name);
