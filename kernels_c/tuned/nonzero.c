/* nonzero.c - see nonzero.h.
 *
 * The elements are processed in blocks.  First each element becomes a bit: 1 if it is not zero.  Threads compute and
 * count the bits of their part; the counts give the first row of each part, and each thread then converts its bits to
 * rows.  So elements are read only once. */
#include "nonzero_words.h"

#include "parallel.h"
#include "scratch.h"
#include "transpose.h"

#define WORD DMLK_NONZERO_WORD
#define BLOCK (INT64_C(1) << 25)          /* elements of a block: 4 MiB of bits */
#define WORTH_A_THREAD (INT64_C(1) << 16) /* elements */
#define JOINED_BYTES (INT64_C(1) << 18)   /* bytes of rows that are joined at a time */
#define PLACES 31                         /* bits of the position of an element */

const struct dmlk_nonzero_form *dmlk_nonzero_form;

/* Copies rows of the iteration that are interleaved in memory, at most `most` elements, one after the other to `to`;
 * returns the number of elements; 0: rows are not copied here. */
static int64_t join_rows(const dmlk_iter *iter, const dmlk_cursor *cursor, int64_t most, uint8_t *to) {
    const int64_t row = (int64_t)iter->rank - 1, bytes = iter->bytes[0], width = iter->sizes[row];
    if (to == NULL || cursor->index[row] != 0) {
        return 0;
    }
    const int64_t left = iter->sizes[row - 1] - cursor->index[row - 1];
    const int64_t rows = dmlk_min(dmlk_min(JOINED_BYTES / bytes, most) / width, left);
    dmlk_transpose(bytes, cursor->at[0], iter->strides[row][0] * bytes, bytes, to, width * bytes, rows, width);
    return rows * width;
}

/* Memory for join_rows; NULL: joining would not help. */
static uint8_t *take_joined(const dmlk_iter *iter) {
    const bool helps = iter->rank > 1 && iter->strides[iter->rank - 1][0] != 1 && iter->strides[iter->rank - 2][0] == 1;
    return helps ? dmlk_take(JOINED_BYTES) : NULL;
}

static void find_part(int64_t begin, int64_t end, int part, void *context) {
    dmlk_nonzero_job *job = context;
    dmlk_nonzero_words words = {.to = job->bits + begin};
    int64_t position = job->first + begin * WORD, work = 0, count = 0;
    const int64_t stop = dmlk_min(job->first + end * WORD, job->first + job->count);
    dmlk_cursor cursor;
    uint8_t *joined = take_joined(job->iter);
    dmlk_iter_seek(job->iter, position, &cursor);
    while (position < stop && !dmlk_stopped(&work, count)) {
        count = join_rows(job->iter, &cursor, stop - position, joined);
        position += count;
        if (count > 0) {
            dmlk_nonzero_form->find_row(job, joined, 1, count, &words);
            dmlk_iter_seek(job->iter, dmlk_min(position, stop - 1), &cursor);
            continue;
        }
        count = dmlk_min(dmlk_iter_row_left(job->iter, &cursor), stop - position);
        count = dmlk_min(count, DMLK_WORK_BETWEEN_LOOKS);
        dmlk_nonzero_form->find_row(job, cursor.at[0], dmlk_iter_row_strides(job->iter)[0], count, &words);
        dmlk_iter_advance(job->iter, &cursor, count);
        position += count;
    }
    dmlk_give(joined);
    if (words.filled > 0) {
        *words.to = words.pending;
    }
    job->rows[part + 1] = words.set;
}

static void write_part(int64_t begin, int64_t end, int part, void *context) {
    const dmlk_nonzero_job *job = context;
    if (job->rows[part + 1] > job->rows[part]) {
        dmlk_nonzero_form->write_words(job, begin, end, job->rows[part]);
    }
}

/* Writes the rows of a block, starting at index `row`; returns the next index. */
static int64_t list_block(dmlk_nonzero_job *job, int64_t row) {
    const int64_t words = (job->count + WORD - 1) / WORD;
    const int parts = (int)dmlk_min(dmlk_parts(job->count, WORTH_A_THREAD), DMLK_NONZERO_PARTS);
    dmlk_parallel(words, parts, find_part, job);
    if (dmlk_watch_stopped()) {
        return row;
    }
    job->rows[0] = row;
    for (int part = 0; part < parts; part++) {
        job->rows[part + 1] += job->rows[part];
    }
    /* Estimate, assuming that all blocks are like this one. */
    const double share = (double)(job->rows[parts] - row) / (double)job->count;
    const double numbers = share * (double)(job->iter->count * job->table->columns);
    job->stream = dmlk_stream_pays((int64_t)numbers, sizeof(uint32_t));
    dmlk_parallel(words, parts, write_part, job);
    return job->rows[parts];
}

/* Plans the divisions of positions for each column.  factor is 2^shift / size rounded up: the error is below
 * 2^(shift - 31) / size, which never changes a quotient of 31-bit positions. */
static void plan_divisions(dmlk_nonzero_job *job, const dmlk_view *in) {
    const int64_t columns = job->table->columns;
    bool outermost = true; /* no outer axis has more than one index */
    for (uint32_t d = 0; d < in->rank; d++) {
        const int64_t column = d - (in->rank - columns);
        uint32_t bits = 0;
        while (INT64_C(1) << bits < in->sizes[d]) {
            bits++;
        }
        if (column >= 0) {
            struct division *axis = &job->axes[column];
            const uint64_t power = UINT64_C(1) << (PLACES + bits), size = (uint64_t)in->sizes[d];
            *axis = (struct division){.size = (uint32_t)size, .shift = PLACES + bits};
            axis->factor = outermost ? 0 : (uint32_t)((power + size - 1) / size); /* fits: size > 2^(bits - 1) */
        }
        outermost = outermost && in->sizes[d] == 1;
    }
}

int64_t dmlk_list_nonzero(const dmlk_view *in, const dmlk_iter *iter, const dmlk_nonzero_table *table) {
    if (iter->count >= INT64_C(1) << PLACES) {
        return -1;
    }
    dmlk_nonzero_job job = {.iter = iter, .table = table, .keep = UINT64_MAX};
    switch (in->type) { /* -0.0 is zero */
    case DMLK_FLOAT16: job.keep = UINT64_C(0x7fff7fff7fff7fff); break;
    case DMLK_FLOAT32: job.keep = UINT64_C(0x7fffffff7fffffff); break;
    case DMLK_FLOAT64: job.keep = UINT64_C(0x7fffffffffffffff); break;
    default: break;
    }
    plan_divisions(&job, in);
    const int64_t blocks = (iter->count + BLOCK - 1) / BLOCK;
    const int64_t longest = (iter->count + blocks * WORD - 1) / (blocks * WORD) * WORD; /* blocks of about equal size */
    job.bits = dmlk_take(longest / 8);
    if (job.bits == NULL) {
        return -1;
    }
    int64_t row = 0;
    for (; job.first < iter->count && !dmlk_watch_stopped(); job.first += longest) {
        job.count = dmlk_min(iter->count - job.first, longest);
        row = list_block(&job, row);
    }
    dmlk_give(job.bits);
    return row;
}
