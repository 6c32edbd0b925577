/* What partage-oci.conf says, in the folder of the program: a name and a value on each line. */
#pragma once

#include <stdbool.h>

struct settings {
    const char *socket, *broker;
    const char *runtime; /* NULL: none was named, and none was found */
    bool guard;
    unsigned agent_wait_ms;
    const char *fault; /* what is wrong with the file, in one line; NULL: nothing */
};

/* Never fails: what is wrong with the file is its fault, and the rest of it counts, so that a container which asks for
 * nothing starts in spite of it. Where `guard` can't be read it is on: cards are kept from those that ask for none. */
struct settings settings_read(void);
