/* test.h - a test harness that fits on a page.  A test program is a file test_*.c:
 *
 *     TEST(adds_up) { CHECK(1 + 1 == 2); }
 *     int main(void) { RUN(adds_up); return RESULT(); }
 */
#ifndef DMLK_TEST_H
#define DMLK_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int test_failures;

/* Reports a failed condition and continues. */
#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
            test_failures++;                                                  \
        }                                                                     \
    } while (0)

#define CHECK_EQUAL(given, expected)                                                                          \
    do {                                                                                                      \
        int64_t given_ = (int64_t)(given), expected_ = (int64_t)(expected);                                   \
        if (given_ != expected_) {                                                                            \
            fprintf(stderr, "%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, #given, given_, \
                    expected_);                                                                               \
            test_failures++;                                                                                  \
        }                                                                                                     \
    } while (0)

#define TEST(name) static void test_##name(void)

#define RUN(name)                                            \
    do {                                                     \
        int before_ = test_failures;                         \
        test_##name();                                       \
        printf("%s %s\n", test_failures == before_ ? "ok    " : "FAILED", #name); \
    } while (0)

#define RESULT() (test_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE)

/* Random numbers, reproducible for each seed. */
uint64_t random_bits(void);
void random_seed(uint64_t seed);

/* A number from low to high, both included. */
int64_t random_between(int64_t low, int64_t high);

#endif
