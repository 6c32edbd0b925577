/* How a card looks to the container: the same for CUDA and NVML. */
#pragma once

#include "account.h"

struct view {
    uint64_t limit;
    uint64_t used; /* by all its processes, contexts and all; of this one without what is lent and not in use */
};

/* False: the broker is away. A card that was not granted has a limit of 0. */
HIDDEN bool view_of(unsigned card, struct view *view);

static inline uint64_t view_free(const struct view *view) {
    return view->used < view->limit ? view->limit - view->used : 0;
}
