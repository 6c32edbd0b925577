/* An empty program, for linkers and libcs that the library does not support. */
#include <stdio.h>

int main(void) { puts("well"); }
