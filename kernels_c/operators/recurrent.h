/* recurrent.h - constants of the recurrent kernel. */
#ifndef DMLK_RECURRENT_H
#define DMLK_RECURRENT_H

#include <stdint.h>

/* cffi: begin */

enum dmlk_cell { DMLK_CELL_RNN = 0, DMLK_CELL_LSTM = 1, DMLK_CELL_GRU = 2 };

/* D directions, T steps, B items, H units; G gates: RNN one, LSTM i o f c, GRU z r h.  Views:
 *   products {D, T, B, G, H}, FLOAT32: the inputs times the weights, plus their bias;
 *   recurrence {D, G, H, H}; its bias {D, G, H}, optional;
 *   first hidden state and cell {D, B, H}; lengths {B}; peepholes {D, 3, H}: optional;
 *   sequence {T, D, B, H}; last hidden state and cell {D, B, H}: optional. */
typedef struct dmlk_recurrent {
    uint32_t cell;      /* enum dmlk_cell */
    uint32_t direction; /* 0: forward, 1: backward, 2: both */
    uint32_t couples;   /* LSTM: the forget gate f is 1 - i; the operands of f are not read */
    uint32_t linear;    /* GRU: r scales the product of h, not the state */
    uint32_t clips;     /* LSTM: gates are clipped to -clip .. clip before their activation */
    float clip;
    uint32_t functions[6];     /* kernels of element-wise functions: one, three, two for each direction */
    uint8_t parameters[6][40]; /* a dmlk_element_wise for each function */
} dmlk_recurrent;

/* cffi: end */

#endif
