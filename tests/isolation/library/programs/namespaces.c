/* Opens a library in a new linker namespace. */
#include "program.h"

int main(int count, char **words) {
    void *handle = dlmopen(LM_ID_NEWLM, words[count - 1], RTLD_NOW);
    if (!handle) return printf("%s\n", dlerror()), 1;
    printf("%d %s\n", version_in(handle), place(found(handle, "cuDriverGetVersion")));
}
