/* Bound to libcuda.so.1 by the linker. */
#include "program.h"

extern int cuDriverGetVersion(int *version);

int main(void) {
    int version = 0;
    cuDriverGetVersion(&version);
    printf("%d %s\n", version, place((void *)cuDriverGetVersion));
}
