/* Reads "name version flags symbol" lines: cuGetProcAddress must find what dlsym finds for the symbol if it has a hook
 * ("hooked"), and otherwise what it finds without the library. Prints the lines for which this fails. */
#include "program.h"

int main(int count, char **words) {
    void *handle = opened("libcuda.so.1", RTLD_NOW), *address;
    int (*first)(const char *, void **, int, long) =
        (int (*)(const char *, void **, int, long))found(handle, "cuGetProcAddress");
    int (*second)(const char *, void **, int, long, int *) =
        (int (*)(const char *, void **, int, long, int *))found(handle, "cuGetProcAddress_v2");
    char name[128], symbol[128], kind[16];
    int version, flags, status, lines = 0;
    const char *driver = words[count - 1];
    while (scanf("%127s %d %d %127s %15s", name, &version, &flags, symbol, kind) == 5) {
        for (int form = 1; form <= 2; form++, lines++) {
            address = NULL;
            int result =
                form == 1 ? first(name, &address, version, flags) : second(name, &address, version, flags, &status);
            int right =
                strcmp(kind, "hooked") ? strstr(place(address), driver) != NULL : address == found(handle, symbol);
            if (result || !right) printf("%s %d %d %s %d: %d\n", name, version, flags, symbol, form, result);
        }
    }
    printf("%d\n", lines);
}
