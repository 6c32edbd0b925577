/* What the parts of the race share: a driver and a broker that are a few arrays, in one process with the library. */
#pragma once

#include "preload/memory/memory.h"

/* ---- driver.c --------------------------------------------------------------------------------------------------- */

uint64_t driver_holds(void);
extern _Atomic uint64_t driver_peak;
/* Every so many calls one fails; 0: none. */
extern _Atomic uint64_t driver_fails_each;

/* ---- broker.c: the session, answered on the spot ---------------------------------------------------------------- */

extern _Atomic uint64_t broker_limit;
/* What it has lent. */
extern _Atomic uint64_t broker_lent;
