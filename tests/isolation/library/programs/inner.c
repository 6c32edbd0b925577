/* The driver calls a name that it exports and that has a hook; and returns an address that belongs to no symbol. */
#include "program.h"

int main(void) {
    void *handle = opened("libcuda.so.1", RTLD_NOW), *address = NULL, *again = NULL;
    int (*get)(const char *, void **, int, long, int *) =
        (int (*)(const char *, void **, int, long, int *))found(handle, "cuGetProcAddress_v2");
    int (*who)(void *, unsigned *) = (int (*)(void *, unsigned *))found(handle, "cuCtxGetApiVersion");
    unsigned caller = 0;
    for (int time = 0; time < 2; time++)
        get("cuDriverGetVersion", &address, 12000, 0, NULL); /* the first one asks for more */
    who(NULL, &caller);
    printf("%s\n", caller == 1 ? "by itself" : "through us");
    get("cuGetProcAddress", &again, 12000, 0, NULL);
    printf("%s\n", again == (void *)get ? "ours" : place(again));
    get("", &again, 0, 0, NULL);
    printf("%s\n", again ? "something" : "nothing");
}
