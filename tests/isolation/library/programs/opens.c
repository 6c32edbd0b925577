/* Opens a library in one of the ways of dlopen; "-" asks for the default symbols of the process. */
#include "program.h"

int main(int count, char **words) {
    static const struct {
        const char *name;
        int flags;
    } ways[] = {{"local", RTLD_LOCAL}, {"global", RTLD_GLOBAL}, {"deepbind", RTLD_DEEPBIND}};
    int flags = RTLD_NOW;
    for (unsigned i = 0; count > 2 && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(words[2], ways[i].name)) flags |= ways[i].flags;
    void *handle = strcmp(words[1], "-") ? opened(words[1], flags) : RTLD_DEFAULT;
    printf("%d %s\n", version_in(handle), place(found(handle, "cuDriverGetVersion")));
}
