/* Table of the parts above library.c, for the files below them. */
#include "library.h"

const struct part event_sets = {.forget = events_forget_all, .lock = events_fork_lock, .unlock = events_fork_unlock};
