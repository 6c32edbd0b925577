/* Whether this process may touch its memory: while what it holds of a card is moved, nothing of it is where its
 * addresses say.
 *
 * Every call that may touch memory is enclosed by presence_enter and presence_leave (moving/calls.c). Who moves shuts
 * the door, waits until nobody is inside, and opens it when all is back. A call that the driver makes from within
 * another one is inside already.
 */
#pragma once

#include "../core/os.h"

HIDDEN void presence_enter(void);
HIDDEN void presence_leave(void);

/* This thread is never stopped at the door, and nobody waits for it: it is the one that moves. */
HIDDEN void presence_exempt(void);

/* From now on nobody comes in. presence_is_empty: whether all are out, waited for until then. */
HIDDEN void presence_shut(void);
HIDDEN bool presence_is_empty(uint64_t deadline);
HIDDEN void presence_open(void);
HIDDEN bool presence_is_shut(void);

/* How many threads stand at the door. */
HIDDEN uint32_t presence_waiting(void);

/* For the one that moves: something has happened, such as that a thread came to the door. presence_await_news: since
 * `seen` was read, or else until then. */
HIDDEN void presence_news(void);
HIDDEN uint32_t presence_news_seen(void);
HIDDEN void presence_await_news(uint32_t seen, uint64_t deadline);

/* Outside: until the door is open; where it is, a moment. */
HIDDEN void presence_await(void);

/* As a part of the session. */
HIDDEN void presence_forget(void);
