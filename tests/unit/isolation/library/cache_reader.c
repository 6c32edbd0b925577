/* Reads contents of a dynamic linker's cache, each after its length in four bytes, and prints the paths that it has for
 * the library named, a line for each content. Each lies in memory of its very size, so that a sanitizer sees every byte
 * that is read beyond it. */
#include "../../../../isolation/preload/frame/ld_cache.c"

#include <stdio.h>
#include <stdlib.h>

static bool print(const char *path, void *unused) {
    (void)unused;
    printf("%s ", path);
    return false;
}

int main(int count, char **words) {
    uint32_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        char *content = malloc(length ? length : 1);
        if (fread(content, 1, length, stdin) != length) return 1;
        ld_cache_find(content, length, words[count - 1], print, NULL);
        free(content);
        printf("\n");
    }
}
