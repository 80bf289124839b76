/* A library that starts a thread and waits for it while it is loaded, and a program that
 * loads it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef LIBRARY
static int ends[2];

/* The first calls of these functions in this process. */
static void *call(void *unused)
{
    struct iovec piece = {"x", 1};
    return writev(ends[1], &piece, 1) == 1 ? unused : NULL;
}

__attribute__((constructor)) static void wait_for_thread(void)
{
    pthread_t thread;
    char byte;
    if (pipe(ends) == 0 && pthread_create(&thread, NULL, call, NULL) == 0 &&
        read(ends[0], &byte, 1) == 1)
        pthread_join(thread, NULL);
}
#else
int main(int count, char **names)
{
    /* A hang fails the test. */
    alarm(20);
    if (count != 2 || !dlopen(names[1], RTLD_NOW)) {
        fprintf(stderr, "%s\n", count == 2 ? dlerror() : "program LIBRARY");
        return 1;
    }
    return 0;
}
#endif
