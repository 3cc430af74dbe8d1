/* The bits of written bytes, compared with an array of bool. */
#include "device.h"

#define TILE 65536
#define PLAIN_SIZE 20000 /* bytes: a few chunks */
#define TILES 3

#define CHUNKS (1 + (130 + PLAIN_SIZE) / (64 * DMLK_SHADOW_CHUNK_WORDS))

/* Two shadows: PLAIN_SIZE bytes, whose bits start at any index and whose full chunks are known; and a reserved range
 * of three tiles, of which the middle one has no memory.  The arrays have exactly their size, so that
 * AddressSanitizer detects every access outside. */
static struct {
    dmlk_shadow shadows[2];
    uint64_t null_tiles;
    bool *written[2]; /* the expected state */
} memory;

static void begin_memory(uint64_t first) {
    memory.null_tiles = 2;
    memory.shadows[0] = (dmlk_shadow){.address = 10000, .size = PLAIN_SIZE, .first = first};
    memory.shadows[1] = (dmlk_shadow){.address = 1 << 20, .size = TILES * TILE, .null_tiles = &memory.null_tiles};
    for (int i = 0; i < 2; i++) {
        dmlk_shadow *s = &memory.shadows[i];
        s->bits = calloc((s->first + s->size + 63) / 64, sizeof *s->bits);
        memory.written[i] = calloc(s->size, sizeof(bool));
    }
    memset(memory.written[1] + TILE, 1, TILE);
    memory.shadows[0].full = calloc(1 + CHUNKS, 1);
}

static void end_memory(void) {
    free(memory.shadows[0].full);
    for (int i = 0; i < 2; i++) {
        free(memory.shadows[i].bits);
        free(memory.written[i]);
    }
}

/* The bool of an address; tiles without memory keep theirs. */
static bool *at(uint64_t address) {
    const int i = address >= memory.shadows[1].address;
    return &memory.written[i][address - memory.shadows[i].address];
}

static void put(uint64_t address, bool written) {
    const bool null = address >= memory.shadows[1].address + TILE && address < memory.shadows[1].address + 2 * TILE;
    *at(address) = written || null;
}

static void expect_bits(void) {
    for (int i = 0; i < 2; i++) {
        const dmlk_shadow *s = &memory.shadows[i];
        for (uint64_t k = 0; k < s->size; k++) {
            const bool null = i == 1 && k / TILE == 1;
            const uint64_t bit = s->first + k;
            if (!null && (s->bits[bit / 64] >> bit % 64 & 1) != memory.written[i][k]) {
                CHECK_EQUAL(k, -1);
                return;
            }
        }
    }
    for (uint64_t word = 0; word < (memory.shadows[0].first + PLAIN_SIZE) / 64; word++) {
        const bool full = memory.shadows[0].full[1 + word / DMLK_SHADOW_CHUNK_WORDS] != 0;
        CHECK(!full || memory.shadows[0].bits[word] == UINT64_MAX);
    }
    const uint64_t first = memory.shadows[0].first;
    CHECK(first % 64 == 0 || (memory.shadows[0].bits[0] & (((uint64_t)1 << first % 64) - 1)) == 0);
}

/* --- footprints --- */

static const uint32_t bit_counts[] = {4, 8, 16, 32, 64};

/* A random footprint in one of the two shadows, often around the tile without memory. */
static dmlk_footprint random_footprint(void) {
    const uint32_t in = random_bits() % 2 != 0;
    const dmlk_shadow *s = &memory.shadows[in];
    dmlk_footprint f = {.bits = bit_counts[random_bits() % 5], .rank = (uint32_t)random_between(0, 4)};
    const uint64_t most = (uint64_t)(in ? TILE + 4000 : PLAIN_SIZE - 8) * 8 / f.bits;
    const uint64_t longest = random_between(0, 3) == 0 ? 300 : 12;
    uint64_t last = 0;
    for (uint32_t d = 0; d < f.rank; d++) {
        f.strides[d] = random_bits() % (longest + 1);
        const uint64_t room = f.strides[d] == 0 ? 3 : (most - last) / f.strides[d] + 1;
        const uint64_t limit = d == 0 && f.rank < 3 ? 5000 : 12;
        f.sizes[d] = 1 + random_bits() % (room < limit ? room : limit);
        last += (f.sizes[d] - 1) * f.strides[d];
    }
    if (!in && random_between(0, 3) == 0) { /* a range */
        f.bits = 8;
        f.rank = 1;
        f.strides[0] = 1;
        f.sizes[0] = 1 + random_bits() % PLAIN_SIZE;
        last = f.sizes[0] - 1;
    }
    const uint64_t size = ((last + 1) * f.bits + 7) / 8;
    const uint64_t low = in && random_between(0, 1) ? TILE - 2000 : 0;
    f.address = s->address + low + random_bits() % (s->size - size - low + 1);
    f.end = f.address + size;
    return f;
}

typedef void byte_visitor(uint64_t address, void *context);

static void each_byte(const dmlk_footprint *f, byte_visitor *visit, void *context) {
    int64_t sizes[DMLK_MAX_RANK], index[DMLK_MAX_RANK] = {0};
    for (uint32_t d = 0; d < f->rank; d++) {
        sizes[d] = (int64_t)f->sizes[d];
    }
    do {
        uint64_t element = 0;
        for (uint32_t d = 0; d < f->rank; d++) {
            element += (uint64_t)index[d] * f->strides[d];
        }
        for (uint64_t bit = element * f->bits; bit < (element + 1) * f->bits; bit += 4) {
            visit(f->address + bit / 8, context);
        }
    } while (next_index(f->rank, sizes, index));
}

static void put_written(uint64_t address, void *context) { put(address, context != NULL); }

static void note_unwritten(uint64_t address, void *context) {
    uint64_t *lowest = context;
    if (!*at(address) && address < *lowest) {
        *lowest = address;
    }
}

static void mark(const dmlk_footprint *f, bool written) {
    if (written) {
        CHECK_EQUAL(dmlk_shadow_mark_written(memory.shadows, 2, f), DMLK_OK);
    } else {
        CHECK_EQUAL(dmlk_shadow_mark_undefined(memory.shadows, 2, f), DMLK_OK);
    }
    each_byte(f, put_written, written ? &memory : NULL);
}

static void expect_first_unwritten(const dmlk_footprint *f) {
    uint64_t expected = UINT64_MAX, found;
    each_byte(f, note_unwritten, &expected);
    CHECK_EQUAL(dmlk_shadow_first_unwritten(memory.shadows, 2, f, &found), DMLK_OK);
    CHECK_EQUAL(found, expected);
}

TEST(random_footprints) {
    for (int round = 0; round < 12 && test_failures == 0; round++) {
        begin_memory((uint64_t)random_between(0, 130));
        for (int i = 0; i < 60 && test_failures == 0; i++) {
            const dmlk_footprint f = random_footprint(), other = random_footprint();
            expect_first_unwritten(&f);
            mark(&f, random_between(0, 2) != 0);
            expect_first_unwritten(&f);
            expect_first_unwritten(&other);
            expect_bits();
        }
        end_memory();
    }
}

/* --- ranges --- */

static void copy(uint64_t destination, uint64_t source, uint64_t size) {
    bool *bytes = malloc(size * sizeof *bytes), all = true;
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = *at(source + i);
        all &= bytes[i];
    }
    int cleared;
    for (uint64_t i = 0; i < size; i++) {
        put(destination + i, bytes[i]);
    }
    free(bytes);
    CHECK_EQUAL(dmlk_shadow_copy(memory.shadows, 2, destination, source, size, &cleared), DMLK_OK);
    CHECK_EQUAL(cleared, !all);
}

static void expect_runs(uint64_t address, uint64_t end) {
    while (address < end) {
        int written;
        uint64_t stop, expected = address + 1;
        CHECK_EQUAL(dmlk_shadow_run(memory.shadows, 2, address, end, &written, &stop), DMLK_OK);
        while (expected < end && *at(expected) == *at(address)) {
            expected++;
        }
        CHECK_EQUAL(written, *at(address));
        CHECK_EQUAL(stop, expected);
        address = expected;
    }
}

static uint64_t random_place(uint64_t size) {
    const dmlk_shadow *s = &memory.shadows[random_between(0, 1)];
    const uint64_t low = s == &memory.shadows[1] && random_between(0, 1) ? TILE - 1000 : 0;
    return s->address + low + random_bits() % (s->size - size - low + 1);
}

TEST(random_copies) {
    for (int round = 0; round < 20 && test_failures == 0; round++) {
        begin_memory((uint64_t)random_between(0, 130));
        for (int i = 0; i < 40 && test_failures == 0; i++) {
            const dmlk_footprint f = random_footprint();
            mark(&f, random_between(0, 3) != 0);
            const uint64_t size = 1 + random_bits() % (random_between(0, 1) ? 200 : 15000);
            const uint64_t source = random_place(size);
            uint64_t destination = random_place(size);
            if (random_between(0, 1)) { /* overlapping */
                const dmlk_shadow *s = &memory.shadows[source >= memory.shadows[1].address];
                destination = source + (uint64_t)random_between(-100, 100);
                const uint64_t end = s->address + s->size - size;
                destination = destination < s->address ? s->address : destination > end ? end : destination;
            }
            copy(destination, source, size);
            expect_bits();
            expect_runs(destination, destination + size);
        }
        end_memory();
    }
}

/* --- rejected arguments, and searches that must end --- */

static void expect_refused(const dmlk_footprint *f, int status) {
    uint64_t address;
    CHECK_EQUAL(dmlk_shadow_first_unwritten(memory.shadows, 2, f, &address), status);
    CHECK_EQUAL(address, UINT64_MAX);
    CHECK_EQUAL(dmlk_shadow_mark_written(memory.shadows, 2, f), status);
    CHECK_EQUAL(dmlk_shadow_mark_undefined(memory.shadows, 2, f), status);
    expect_bits();
}

TEST(footprints_outside_change_nothing) {
    begin_memory(5);
    dmlk_footprint f = {.bits = 8, .rank = 1, .sizes = {PLAIN_SIZE}, .strides = {1}};
    for (f.address = 0; f.address < 20000; f.address += 499) {
        expect_refused(&f, DMLK_BAD_ADDRESS);
    }
    f = (dmlk_footprint){.address = 10000, .bits = 8, .rank = 2, .sizes = {2, 1}, .strides = {PLAIN_SIZE, 1}};
    expect_refused(&f, DMLK_BAD_ADDRESS);
    f.strides[0] = UINT64_MAX / 16;
    expect_refused(&f, DMLK_BAD_ADDRESS);
    f.strides[0] = UINT64_MAX;
    expect_refused(&f, DMLK_BAD_PACKET);
    f.sizes[0] = 0;
    expect_refused(&f, DMLK_BAD_PACKET);
    f = (dmlk_footprint){.address = UINT64_MAX, .bits = 64};
    expect_refused(&f, DMLK_BAD_PACKET);
    uint64_t stop;
    int written;
    CHECK_EQUAL(dmlk_shadow_run(memory.shadows, 2, 10000, 10000 + PLAIN_SIZE + 1, &written, &stop), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_run(memory.shadows, 2, 10000, 10000, &written, &stop), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_run(memory.shadows, 2, 10001, 10000, &written, &stop), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_copy(memory.shadows, 2, 10001, 10000, PLAIN_SIZE, &written), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_copy(memory.shadows, 2, 10000, 10001, PLAIN_SIZE, &written), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_copy(memory.shadows, 0, 10000, 10001, 1, &written), DMLK_BAD_ADDRESS);
    CHECK_EQUAL(dmlk_shadow_copy(memory.shadows, 2, 10000, 10001, 0, &written), DMLK_OK);
    expect_bits();
    end_memory();
}

/* 2e10 elements in 2669 bytes: counting them one by one would take too long. */
TEST(elements_without_number) {
    static const uint64_t strides[] = {2, 7, 11, 13, 17, 19, 23};
    begin_memory(0);
    dmlk_footprint f = {.address = 10000, .bits = 8, .rank = 7};
    for (uint32_t d = 0; d < f.rank; d++) {
        f.sizes[d] = 30;
        f.strides[d] = strides[d];
    }
    uint64_t first;
    CHECK_EQUAL(dmlk_shadow_mark_written(memory.shadows, 2, &f), DMLK_OK);
    CHECK_EQUAL(dmlk_shadow_first_unwritten(memory.shadows, 2, &f, &first), DMLK_OK);
    CHECK_EQUAL(first, UINT64_MAX);
    f.strides[6] = 3;
    CHECK_EQUAL(dmlk_shadow_first_unwritten(memory.shadows, 2, &f, &first), DMLK_OK);
    CHECK_EQUAL(first, 10003);
    end_memory();
}

int main(void) {
    RUN(random_footprints);
    RUN(random_copies);
    RUN(footprints_outside_change_nothing);
    RUN(elements_without_number);
    return RESULT();
}
