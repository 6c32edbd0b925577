/* A driver's NVML that does nothing. */
#include <string.h>

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    strncpy(version, "123.40", length);
    return 0;
}

const char *nvmlErrorString(int result) { return result ? "trouble" : "fine"; }

int nvmlOfTomorrow(void) { return 77; }
