/* Allocates memory on the container's card as often as its argument says, and exports a handle of each allocation,
 * which other processes could open. Then it sleeps.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *driver;

static int call(const char *name, void *first, unsigned long long second) {
    int (*found)() = (int (*)())dlsym(driver, name);
    return found ? found(first, second) : -1;
}

int main(int arguments, char **argument) {
    void *context;
    int device, failed;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || arguments != 2) return 2;
    failed = call("cuInit", NULL, 0) || call("cuDeviceGet", &device, 0);
    failed = failed || call("cuDevicePrimaryCtxRetain", &context, (unsigned)device);
    failed = failed || call("cuCtxSetCurrent", context, 0);
    for (int left = atoi(argument[1]); !failed && left; left--) {
        unsigned long long address;
        char handle[64];
        failed = call("cuMemAlloc_v2", &address, 2 << 20) || call("cuIpcGetMemHandle", handle, address);
    }
    printf(failed ? "no more handles\n" : "all handles\n");
    fflush(stdout);
    for (;;) pause();
}
