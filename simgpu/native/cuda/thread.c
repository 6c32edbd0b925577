/* State of the calling thread, and its end. */
#include "streams.h"

/* With the static model, a program that loads this library late pays only for these bytes, and no function is
 * called. */
static _Thread_local struct thread here __attribute__((tls_model("initial-exec")));
static pthread_key_t at_end;
static pthread_once_t at_end_once = PTHREAD_ONCE_INIT;
static void (*ends)(void *thread);

struct thread *thread_here(void) { return &here; }

static void make_key(void) { pthread_key_create(&at_end, ends); }

void thread_at_end(void (*run)(void *thread)) {
    ends = run;
    pthread_once(&at_end_once, make_key);
    pthread_setspecific(at_end, &here);
}
