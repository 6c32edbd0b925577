/* Has another object open a library by name, which only that object's own search path finds. */
#include "program.h"

int main(int count, char **words) {
    void *(*asked)(const char *) = (void *(*)(const char *))found(opened(words[1], RTLD_NOW), "asked");
    puts(count == 3 && asked(words[2]) ? "found" : dlerror());
}
