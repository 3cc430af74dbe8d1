/* attention.h - constants of the attention kernel. */
#ifndef DMLK_ATTENTION_H
#define DMLK_ATTENTION_H

#include <stdint.h>

/* cffi: begin */

enum dmlk_attention_mask {
    DMLK_MASK_NONE = 0,
    DMLK_MASK_LENGTH = 1,    /* mask {B}: keys from this number on are masked */
    DMLK_MASK_END_START = 2, /* mask {2, B}: keys from the first row on, and before the second one */
    DMLK_MASK_BOOLEAN = 4    /* mask {B, H, S, T}: keys where it is 0 */
};

/* B items, S queries, N new keys, P past ones, H heads of queries, G of keys (H is a multiple of it), E and V
 * elements.  Views: queries {B, H, S, E}; keys {B, G, N, E} and values {B, G, N, V}, optional; their biases {H, E},
 * {G, E}, {G, V}, optional; mask (INT32) and relative bias {B, H, S, T}, optional; past keys and values {B, G, P, E
 * or V}, optional; past lengths {B}, optional; out {B, H, S, V}; present keys and values {B, G, T, E or V}, optional.
 * T = P + N; with past lengths, T is the size of the present or past keys.  Past and present may be the same memory. */
typedef struct dmlk_attention {
    uint32_t mask; /* enum dmlk_attention_mask */
    float scale;
    float filter; /* BOOLEAN: added to the scores of masked keys; otherwise it replaces them */
} dmlk_attention;

/* cffi: end */

#endif
