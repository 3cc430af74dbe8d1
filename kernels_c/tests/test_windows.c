/* The walker of windows, compared with its definition. */
#include "device.h"
#include "windows.h"

#define MOST 4000

static int64_t packed_strides(uint32_t rank, const int64_t *sizes, int64_t *strides) {
    int64_t elements = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = elements;
        elements *= sizes[d];
    }
    return elements;
}

/* The inputs that the walker returned for each output, in order, as element numbers. */
static struct {
    int64_t count, inputs[60];
} met[MOST];

static void walk(const dmlk_windows *w, int64_t begin, int64_t end) {
    dmlk_window_row row;
    for (int64_t number = begin; number < end; number++) {
        number == begin ? dmlk_window_seek(w, number, &row) : dmlk_window_next(w, &row);
        dmlk_place place;
        for (bool more = dmlk_first_place_of(w, &row, &place); more; more = dmlk_next_place_of(w, &row, &place)) {
            CHECK(place.begin < place.end);
            for (int64_t i = place.begin; i < place.end; i++) {
                const int64_t output = (row.out - w->out) / w->out_bytes + i * w->out_strides[w->along];
                const int64_t input = (place.first - w->in) / w->in_bytes + (i - place.begin) * w->row_step;
                met[output].inputs[met[output].count++] = input;
            }
        }
        for (int64_t i = 0; i < row.count; i++) { /* as counted one by one */
            const int64_t output = (row.out - w->out) / w->out_bytes + i * w->out_strides[w->along];
            const double count = dmlk_count_places(w, &row, dmlk_count_others(w, &row, false), i, false);
            CHECK(count == (double)met[output].count);
        }
    }
}

/* Compares the inputs of one output, in row-major order of the window, with those that the walker returned. */
static void compare(const dmlk_window_axis *axes, uint32_t spatial, const int64_t *index, const int64_t *strides,
                    int64_t output) {
    int64_t place[3] = {0}, sizes[3], met_before = 0;
    for (uint32_t d = 0; d < spatial; d++) {
        sizes[d] = axes[d].window;
    }
    do {
        int64_t input = index[0] * strides[0] + index[1] * strides[1];
        bool inside = true;
        for (uint32_t d = 0; d < spatial; d++) {
            const int64_t at = index[2 + d] * axes[d].stride + place[d] * axes[d].dilation - axes[d].start;
            inside = inside && at >= 0 && at < axes[d].input;
            input += at * strides[2 + d];
        }
        if (inside) {
            CHECK(met_before < met[output].count && met[output].inputs[met_before] == input);
            met_before++;
        }
    } while (next_index(spatial, sizes, place));
    CHECK_EQUAL(met_before, met[output].count);
}

TEST(every_output_reads_its_inputs_in_order) {
    for (int round = 0; round < 2000; round++) {
        const uint32_t spatial = (uint32_t)random_between(1, 3), rank = spatial + 2;
        dmlk_window_axis axes[3];
        int64_t in_sizes[5] = {random_between(1, 2), random_between(1, 3)}, out_sizes[5] = {in_sizes[0], in_sizes[1]};
        for (uint32_t d = 0; d < spatial; d++) {
            axes[d] = (dmlk_window_axis){.input = random_between(1, 7),
                                         .output = spatial == 1 && round % 9 == 0 ? 600 : random_between(1, 6),
                                         .window = random_between(1, spatial == 1 && round % 2 ? 50 : 3),
                                         .stride = random_between(1, 4),
                                         .dilation = random_between(1, 3),
                                         .start = random_between(0, 4),
                                         .end = random_between(0, 4)};
            in_sizes[2 + d] = axes[d].input;
            out_sizes[2 + d] = axes[d].output;
        }
        int64_t in_strides[5], out_strides[5];
        uint8_t *memory = malloc(4);
        const int64_t elements = packed_strides(rank, out_sizes, out_strides);
        packed_strides(rank, in_sizes, in_strides);
        if (round % 2) { /* axes in another order */
            const int64_t channels = out_sizes[1];
            for (uint32_t d = 2; d < rank; d++) {
                out_strides[d] *= channels;
            }
            out_strides[1] = 1;
        }
        dmlk_view in = {.base = memory, .type = DMLK_FLOAT32, .rank = rank}, out = in;
        memcpy(in.sizes, in_sizes, sizeof in_sizes);
        memcpy(in.strides, in_strides, sizeof in_strides);
        memcpy(out.sizes, out_sizes, sizeof out_sizes);
        memcpy(out.strides, out_strides, sizeof out_strides);
        memset(met, 0, sizeof met);
        CHECK(elements <= MOST);
        dmlk_windows w;
        CHECK_EQUAL(dmlk_windows_init(&w, &in, &out, axes, spatial), DMLK_OK);
        const int64_t split = random_between(0, w.rows);
        walk(&w, split, w.rows);
        walk(&w, 0, split);
        int64_t index[5] = {0};
        do {
            int64_t output = 0;
            for (uint32_t d = 0; d < rank; d++) {
                output += index[d] * out_strides[d];
            }
            compare(axes, spatial, index, in_strides, output);
        } while (next_index(rank, out_sizes, index));
        free(memory);
    }
}

/* Numbers as large as they can be: nothing exceeds 64 bits (the sanitizers check that), and no time is spent on
 * places that are outside the input for all outputs of a row. */
TEST(windows_of_any_numbers) {
    static const int64_t numbers[] = {0, 1, 2, 3, 7, 255, 65536, INT64_C(0x7fffffff), INT64_C(0xffffffff)};
    for (int round = 0; round < 20000; round++) {
        int64_t k[8];
        for (int i = 0; i < 8; i++) {
            k[i] = numbers[random_between(0, 8)];
        }
        const dmlk_window_axis axis = {
            .window = k[0], .stride = k[1], .dilation = k[2], .start = k[3], .end = k[4]};
        dmlk_view in = {.type = DMLK_FLOAT16, .rank = 3, .sizes = {1, 1, k[5] + 1}, .strides = {0, 0, k[6] % 8}};
        dmlk_view out = {.type = DMLK_FLOAT16, .rank = 3, .sizes = {1, 1, k[7] + 1}, .strides = {0, 0, 0}};
        dmlk_windows w;
        const int status = dmlk_windows_init(&w, &in, &out, &axis, 1);
        CHECK(status == DMLK_OK || status == DMLK_BAD_PACKET);
        if (status != DMLK_OK) {
            continue;
        }
        dmlk_window_row row;
        dmlk_place place;
        const int64_t some[] = {0, w.rows / 2, w.rows - 1};
        for (int i = 0; i < 3; i++) {
            dmlk_window_seek(&w, some[i], &row);
            bool more = dmlk_first_place_of(&w, &row, &place);
            for (int j = 0; more && j < 5; j++) {
                CHECK(place.begin >= 0 && place.begin < place.end && place.end <= row.count);
                more = dmlk_next_place_of(&w, &row, &place);
            }
            const double inside = dmlk_count_places(&w, &row, 1, 0, false);
            const double padded = dmlk_count_places(&w, &row, 1, 0, true);
            CHECK(inside >= 0 && inside <= padded && padded <= (double)k[0]);
        }
        dmlk_slice slices[DMLK_MOST_SLICES];
        bool has_more = false;
        const uint32_t count = dmlk_window_slices(&w.axes[4], slices, &has_more);
        CHECK(!has_more || count == 1);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(slices[i].first >= 0 && slices[i].first + (slices[i].count - 1) * slices[i].step < in.sizes[2]);
        }
    }
}

/* Outputs times stride needs more than 63 bits, but only the first window is inside. */
TEST(windows_that_are_far_apart) {
    const int64_t in_sizes[] = {1, 1, 4}, out_sizes[] = {1, 1, INT64_C(1) << 32};
    dmlk_view in = {.rank = 3, .type = DMLK_FLOAT32}, out = {.rank = 3, .type = DMLK_FLOAT32};
    memcpy(in.sizes, in_sizes, sizeof in_sizes);
    memcpy(out.sizes, out_sizes, sizeof out_sizes);
    in.strides[2] = out.strides[2] = 1;
    const dmlk_window_axis axis = {.window = 2, .stride = INT64_C(1) << 32, .dilation = 1, .start = 1, .end = 1};
    dmlk_windows w;
    CHECK_EQUAL(dmlk_windows_init(&w, &in, &out, &axis, 1), DMLK_OK);
    for (int64_t number = 0; number < 3; number++) {
        dmlk_window_row row;
        dmlk_window_seek(&w, number, &row);
        CHECK_EQUAL(row.count, 1);
        CHECK_EQUAL(row.begin[DMLK_WINDOW_AXES - 1] < row.end[DMLK_WINDOW_AXES - 1], number == 0);
    }
}

int main(void) {
    RUN(every_output_reads_its_inputs_in_order);
    RUN(windows_of_any_numbers);
    RUN(windows_that_are_far_apart);
    return RESULT();
}
