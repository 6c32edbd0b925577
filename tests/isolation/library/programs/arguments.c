/* Seventeen arguments of mixed types pass through the named entry, twice: its first call differs from later ones. */
#include "program.h"

typedef int function(int, double, long, float, int, double, long, double, int, double, long, double, int, double, long,
                     double, double);

int main(int count, char **words) {
    function *call = (function *)found(opened("libcuda.so.1", RTLD_NOW), words[count - 1]);
    for (int time = 0; time < 2; time++) printf("%d ", call(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17));
    printf("\n");
}
