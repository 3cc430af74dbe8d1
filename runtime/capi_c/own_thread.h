/* Threads of our own, of either C library. */
#ifndef DMLEMU_OWN_THREAD_H
#define DMLEMU_OWN_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "caller.h"

/* Starts a thread on which no signal handler of the program runs. */
static int dmlemu_start_thread(void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, DMLEMU_OWN_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, &attributes, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

#endif
