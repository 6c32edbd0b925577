/* Barrier that keeps this process from touching its memory while that is moved: meanwhile nothing that it holds of a
 * card is at its address.
 *
 * Every call that may touch memory is enclosed by presence_enter and presence_leave (moving/calls.c). The mover shuts
 * the barrier, waits until no thread is inside, and opens it when everything is back. A call that the driver makes from
 * within another call is inside already.
 */
#pragma once

#include "../core/os.h"

HIDDEN void presence_enter(void);
HIDDEN void presence_leave(void);

/* Exempts this thread from the barrier: it is never blocked there or waited for. For the mover. */
HIDDEN void presence_exempt(void);

/* From now on no thread can enter. presence_is_empty waits until `deadline` for all threads to leave, and returns
 * whether they have. */
HIDDEN void presence_shut(void);
HIDDEN bool presence_is_empty(uint64_t deadline);
HIDDEN void presence_open(void);
HIDDEN bool presence_is_shut(void);

/* The number of threads blocked at the barrier. */
HIDDEN uint32_t presence_waiting(void);

/* Wake-ups for the mover: something has happened, such as a thread arriving at the barrier. presence_await_news waits
 * until that happens after `seen` was read, or until the deadline. */
HIDDEN void presence_news(void);
HIDDEN uint32_t presence_news_seen(void);
HIDDEN void presence_await_news(uint32_t seen, uint64_t deadline);

/* Outside the barrier: waits until it is open; if it is open already, waits briefly. */
HIDDEN void presence_await(void);

/* As a part of the session. */
HIDDEN void presence_forget(void);
