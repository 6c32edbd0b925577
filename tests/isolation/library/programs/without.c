/* The library's answers without a driver. */
#include "program.h"

int main(void) {
    void *cuda = opened("libcuda.so.1", RTLD_NOW), *address = cuda;
    const char *text = "untouched";
    errno = 77;
    printf("cuInit %d\n", ((int (*)(unsigned))found(cuda, "cuInit"))(0));
    printf("errno %d\n", errno);
    printf("cuDeviceGet %d\n", ((int (*)(int *, int))found(cuda, "cuDeviceGet"))(NULL, 0));
    printf("cuGetErrorString %d", ((int (*)(int, const char **))found(cuda, "cuGetErrorString"))(100, &text));
    printf(" %s\n", text ? text : "nothing");
    printf("cuGetProcAddress %d", ((int (*)(const char *, void **, int, long))found(cuda, "cuGetProcAddress"))(
                                      "cuMemAlloc", &address, 12000, 0));
    printf(" %s\n", address ? "something" : "nothing");
    printf("dlerror %s\n", dlerror() ? "something" : "nothing");
}
