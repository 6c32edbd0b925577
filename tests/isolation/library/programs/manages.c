/* Uses only NVML, from the given library. */
#include "program.h"

int main(int count, char **words) {
    void *handle = opened(count > 1 ? words[1] : "libnvidia-ml.so.1", RTLD_NOW);
    int (*init)(void) = (int (*)(void))found(handle, "nvmlInit_v2");
    int (*other)(unsigned *) = (int (*)(unsigned *))found(handle, "nvmlDeviceGetCount_v2");
    int (*version)(char *, unsigned) = (int (*)(char *, unsigned))found(handle, "nvmlSystemGetDriverVersion");
    const char *(*text)(int) = (const char *(*)(int))found(handle, "nvmlErrorString");
    char said[16] = "none";
    unsigned number;
    if (version(said, sizeof said)) printf("%d ", init());
    printf("%d %s %s\n", other(&number), said, text(12));
}
