/* Defines its own dlopen, as some tools do, which calls the next one. */
#include "program.h"

static int calls;

void *dlopen(const char *path, int flags) {
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    calls++;
    return next(path, flags);
}

int main(int count, char **words) {
    void *driver = opened(words[count - 1], RTLD_NOW), *itself = opened(NULL, RTLD_NOW);
    int has_main = itself != NULL, is_there = dlopen(words[count - 1], RTLD_NOW | RTLD_NOLOAD) == driver;
    printf("%d %s %d %d %d\n", version_in(driver), place(found(driver, "cuInit")), has_main, is_there, calls);
}
