/* Two hundred threads make the first call of the process at once; some open a library whose constructor makes it. */
#include "program.h"

#include <pthread.h>

enum { THREADS = 200 };

static pthread_barrier_t begin;
static const char *early;

static void *run(void *number) {
    pthread_barrier_wait(&begin);
    if ((size_t)number % 10 == 0) opened(early, RTLD_NOW);
    return (void *)(size_t)version_in(opened("libcuda.so.1", RTLD_NOW));
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    void *version;
    size_t sum = 0;
    early = words[count - 1];
    pthread_barrier_init(&begin, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i)) return printf("no thread\n"), 1;
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], &version), sum += (size_t)version;
    printf("%zu\n", sum / THREADS);
}
