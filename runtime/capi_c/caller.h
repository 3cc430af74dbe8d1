/* Two things that Python needs from the thread it runs on, and that a C program need not provide: room on the stack,
 * and the usual floating-point mode. */

#ifndef DMLEMU_CALLER_H
#define DMLEMU_CALLER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DMLEMU_ROOM = 768 << 10,      /* the most bytes of stack that an interpreter and a kernel need */
    DMLEMU_OWN_STACK = 8 << 20,   /* bytes of stack of our own threads */
    DMLEMU_USUAL_MODE = 0x1F80,   /* MXCSR: round to nearest, denormals, no traps */
    DMLEMU_MODE_BITS = 0xFFC0     /* the mode bits of MXCSR; the other bits are flags that operations set */
};

/* The part of this thread's stack on which Python may be called; empty: none, or not known yet. */
struct dmlemu_stack {
    uintptr_t start, size;
    int is_known;
};

static inline int dmlemu_is_inside(const struct dmlemu_stack *stack, uintptr_t address)
{
    return address - stack->start < stack->size;
}

static inline void dmlemu_measure_stack(struct dmlemu_stack *stack)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    stack->is_known = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0 && size > DMLEMU_ROOM) {
        stack->start = (uintptr_t)lowest + DMLEMU_ROOM;
        stack->size = size - DMLEMU_ROOM;
    }
    pthread_attr_destroy(&attributes);
}

/* Whether Python may be called here: not on a small stack, not near the end of a large one, and not on a stack that
 * the program made itself, such as a coroutine's.  `measure`: dmlemu_measure_stack of the thread's C library. */
static inline int dmlemu_has_room(struct dmlemu_stack *stack, void (*measure)(struct dmlemu_stack *))
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(dmlemu_is_inside(stack, here), 1))
        return 1;
    if (stack->is_known)
        return 0;
    measure(stack);
    return dmlemu_is_inside(stack, here);
}

/* Sets the usual mode and returns the previous one. */
static inline uint32_t dmlemu_enter_mode(void)
{
#if defined(__x86_64__)
    const uint32_t before = __builtin_ia32_stmxcsr();
    if (__builtin_expect((before & DMLEMU_MODE_BITS) != DMLEMU_USUAL_MODE, 0))
        __builtin_ia32_ldmxcsr(DMLEMU_USUAL_MODE);
    return before;
#else
    return DMLEMU_USUAL_MODE;
#endif
}

static inline void dmlemu_leave_mode(uint32_t before)
{
#if defined(__x86_64__)
    if (__builtin_expect((before & DMLEMU_MODE_BITS) != DMLEMU_USUAL_MODE, 0))
        __builtin_ia32_ldmxcsr(before);
#else
    (void)before;
#endif
}

#endif
