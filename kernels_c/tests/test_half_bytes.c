/* Elements of 4 bits, in any layout, against their definition. */
#include "device.h"

/* The element by its definition: element number n is in byte n / 2, the first of two in the low half. */
static int64_t number_of(const dmlk_view *view, const int64_t *index) {
    int64_t number = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        number += index[d] * view->strides[d];
    }
    return number;
}

static uint8_t get_half(const dmlk_view *view, int64_t number) {
    return (uint8_t)(view->base[number / 2] >> (number % 2 * 4) & 15);
}

TEST(copies_in_any_layout) {
    for (int round = 0; round < 300; round++) {
        int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK], index[DMLK_MAX_RANK] = {0};
        const uint32_t rank = random_sizes(sizes);
        device d;
        device_begin(&d, "copy");
        random_strides(rank, sizes, true, strides);
        const dmlk_view *in = device_tensor(&d, DMLK_INT4, rank, sizes, round % 2 ? strides : NULL);
        random_strides(rank, sizes, false, strides);
        const dmlk_view *out = device_tensor(&d, DMLK_INT4, rank, sizes, round / 2 % 2 ? strides : NULL);
        for (uint64_t i = 0; i < in->byte_size; i++) {
            in->base[i] = (uint8_t)random_bits();
        }
        device_constants(&d, NULL, 0, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        bool *written = calloc(2 * out->byte_size, sizeof *written);
        int64_t wrong = 0;
        do {
            const int64_t number = number_of(out, index);
            wrong += get_half(out, number) != get_half(in, number_of(in, index));
            written[number] = true;
        } while (next_index(rank, sizes, index));
        for (int64_t number = 0; number < (int64_t)(2 * out->byte_size); number++) {
            wrong += !written[number] && get_half(out, number) != (DEVICE_UNTOUCHED & 15);
        }
        CHECK_EQUAL(wrong, 0);
        free(written);
        device_end(&d);
    }
}

int main(void) {
    RUN(copies_in_any_layout);
    return RESULT();
}
