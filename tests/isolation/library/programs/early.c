/* A library that uses the driver slowly, while it is being loaded. */
#include "program.h"

extern int early_version;
int early_version;

__attribute__((constructor)) static void use(void) {
    usleep(20000);
    early_version = version_in(RTLD_DEFAULT);
}
