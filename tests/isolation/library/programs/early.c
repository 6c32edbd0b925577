/* A library that uses the driver while it is loaded, and takes its time. */
#include "program.h"

extern int early_version;
int early_version;

__attribute__((constructor)) static void use(void) {
    usleep(20000);
    early_version = version_in(RTLD_DEFAULT);
}
