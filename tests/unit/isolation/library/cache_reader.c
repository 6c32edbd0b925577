/* Reads dynamic linker caches from stdin, each after its length in four bytes, and prints for each a line with the
 * paths that it has for the named library. Each cache is in memory of exactly its size, so that a sanitizer detects
 * every read beyond it. */
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
