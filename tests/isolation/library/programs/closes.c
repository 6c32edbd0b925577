/* Opens and closes the library repeatedly, and keeps an address from the first time. */
#include "program.h"

int main(void) {
    int version = 0, (*kept)(int *) = NULL;
    for (int time = 0; time < 100; time++) {
        void *handle = opened("libcuda.so.1", RTLD_NOW);
        if (!kept) kept = (int (*)(int *))found(handle, "cuDriverGetVersion");
        if ((void *)kept != found(handle, "cuDriverGetVersion")) printf("moved\n");
        dlclose(handle);
    }
    kept(&version);
    printf("%d\n", version);
}
