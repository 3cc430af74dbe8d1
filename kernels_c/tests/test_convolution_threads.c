/* Convolutions of bytes whose phases run on several threads at once; for ThreadSanitizer, which finds what a phase reads
 * of the phase before without waiting for it. */
#include "convolution_integer.h"
#include "device.h"
#include "parallel.h"

/* Channels last: the strides of a packed tensor with its channels innermost. */
static const dmlk_view *channels_last(device *d, enum dmlk_type type, const int64_t *sizes) {
    const int64_t channels = sizes[1], row = sizes[3] * channels;
    return device_tensor(d, type, 4, sizes, (const int64_t[]){sizes[2] * row, 1, row, channels});
}

/* Windows of one row of 3 or 5 channels, whose last quad ends after the row; the tiles of a part, of 7 or 16 positions,
 * end with a line of the input that is the last one of a part, too. */
TEST(quads_end_with_their_line) {
    for (int round = 0; round < 200; round++) {
        dmlk_set_threads((int)random_between(2, 3));
        const int64_t channels = 3 + round % 2 * 2, width = round % 4 < 2 ? 7 : 16, rows = 6 * random_between(4, 20);
        const int64_t in[] = {1, channels, rows, width + 2}, filter[] = {64, channels, 1, 3}, out[] = {1, 64, rows, width};
        const dmlk_convolution_integer k = {.spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}};
        device d;
        device_begin(&d, "convolution_integer");
        fill_random(channels_last(&d, DMLK_UINT8, in), 1, 1);
        device_no_tensor(&d);
        fill_random(channels_last(&d, DMLK_INT8, filter), 2, 2);
        device_no_tensor(&d);
        device_no_tensor(&d);
        const dmlk_view *sums = channels_last(&d, DMLK_INT32, out);
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        int64_t index[4] = {0}, wrong = 0;
        do {
            wrong += get_element(sums, index) != (double)(6 * channels);
        } while (next_index(4, out, index));
        CHECK_EQUAL(wrong, 0);
        device_end(&d);
    }
}

int main(void) {
    dmlk_split_everything();
    RUN(quads_end_with_their_line);
    return RESULT();
}
