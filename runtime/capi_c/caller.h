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
#ifdef __aarch64__
    DMLEMU_USUAL_MODE = 0,        /* FPCR: round to nearest, denormals, no traps */
    DMLEMU_MODE_BITS = 0x7FFFFFFF
#else
    DMLEMU_USUAL_MODE = 0x1F80,   /* MXCSR: the same */
    DMLEMU_MODE_BITS = 0xFFC0     /* the mode bits of MXCSR; the other bits are flags that operations set */
#endif
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

/* The mode of this thread: MXCSR, or on ARM FPCR, whose bits are all mode. */
static inline uint32_t dmlemu_mode(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (uint32_t)mode;
#else
    return DMLEMU_USUAL_MODE;
#endif
}

static inline void dmlemu_set_mode(uint32_t mode)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode) : "memory");
#else
    (void)mode;
#endif
}

/* Sets the usual mode and returns the previous one. */
static inline uint32_t dmlemu_enter_mode(void)
{
    const uint32_t before = dmlemu_mode();
    if (__builtin_expect((before & DMLEMU_MODE_BITS) != DMLEMU_USUAL_MODE, 0))
        dmlemu_set_mode(DMLEMU_USUAL_MODE);
    return before;
}

static inline void dmlemu_leave_mode(uint32_t before)
{
    if (__builtin_expect((before & DMLEMU_MODE_BITS) != DMLEMU_USUAL_MODE, 0))
        dmlemu_set_mode(before);
}

#endif
