/* Shared by the parts of the race: a driver and a broker made of a few arrays, in one process with the library. */
#pragma once

#include "preload/memory/reserves.h"

/* ---- driver.c --------------------------------------------------------------------------------------------------- */

uint64_t driver_holds(void);
extern _Atomic uint64_t driver_peak;
/* One of this many calls fails; 0: none. */
extern _Atomic uint64_t driver_fails_each;

/* ---- broker.c: the session, answered on the spot ---------------------------------------------------------------- */

extern _Atomic uint64_t broker_limit;
/* Bytes that it has lent. */
extern _Atomic uint64_t broker_lent;
