/* sorted_words.h - the best candidates of top_k as ascending words, each with a key in its upper half and an index in
 * its lower half. */
#ifndef DMLK_SORTED_WORDS_H
#define DMLK_SORTED_WORDS_H

#include <stdint.h>

#define DMLK_WORDS 8 /* words of a vector; counts of words are multiples of it */

/* Forms (see dispatch/choose.c); without a form, candidates are not kept as words.  Of equal keys the lower index
 * comes first, as elements are inserted in order. */
extern const struct dmlk_top_k_form {
    /* Inserts a word and drops the last one. */
    void (*insert_word)(uint64_t *words, int64_t count, uint64_t word);

    /* Inserts those of n <= 16 keys that are at most `bound`, with the indices from `index` on, into at most
     * 2 * DMLK_WORDS words; returns how many were inserted. */
    int64_t (*insert_keys)(uint64_t *words, int64_t count, const uint32_t *keys, int64_t n, uint32_t bound, int64_t index);
} *dmlk_top_k_form;

#endif
