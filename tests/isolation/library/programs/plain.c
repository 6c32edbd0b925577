/* Nothing. For linkers and libcs that the library is not for. */
#include <stdio.h>

int main(void) { puts("well"); }
