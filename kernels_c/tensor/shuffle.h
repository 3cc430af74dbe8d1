/* shuffle.h - elements of two vectors, by constant indices; `type` is the vector of indices.  Each compiler has a form of
 * its own, and GCC has clang's from version 12 on. */
#ifndef DMLK_SHUFFLE_H
#define DMLK_SHUFFLE_H

#ifdef __clang__
#define DMLK_SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define DMLK_SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

#endif
