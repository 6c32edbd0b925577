/* The settings in partage-oci.conf, which is in the program's folder: a name and a value on each line. */
#pragma once

#include <stdbool.h>

struct settings {
    const char *socket, *broker;
    const char *runtime; /* NULL: none was set or found */
    bool guard;
    unsigned agent_wait_ms;
    const char *fault; /* the mistake in the file, in one line, or NULL */
};

/* Never fails: a mistake in the file becomes `fault`, and its other lines apply, so that containers that ask for
 * nothing still start. If `guard` cannot be read it is on: cards are kept from containers that ask for none. */
struct settings settings_read(void);
