/* dmlk.h - the C side of the emulated GPU: strided views and the kernels that loop over them.
 *
 * This header is read twice: by the C compiler, and by cffi (build_ffi.py passes everything
 * between "cffi: begin" and "cffi: end" to ffi.cdef).  Keep that part free of preprocessor lines
 * other than `#define NAME number`.
 *
 * C11; nothing here depends on Python or on the objects of the API. */
#ifndef DMLK_H
#define DMLK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cffi: begin */

#define DMLK_MAX_RANK 8

/* The values of DML_TENSOR_DATA_TYPE. */
enum dmlk_type {
    DMLK_UNKNOWN = 0,
    DMLK_FLOAT32 = 1,
    DMLK_FLOAT16 = 2,
    DMLK_UINT32 = 3,
    DMLK_UINT16 = 4,
    DMLK_UINT8 = 5,
    DMLK_INT32 = 6,
    DMLK_INT16 = 7,
    DMLK_INT8 = 8,
    DMLK_FLOAT64 = 9,
    DMLK_UINT64 = 10,
    DMLK_INT64 = 11,
    DMLK_UINT4 = 12,
    DMLK_INT4 = 13
};

/* One strided tensor in host memory.  Element (i0, i1, ...) is `sum(i * stride)` elements after `base`; stride 0
 * repeats (broadcast).  base == NULL: the optional tensor is absent. */
typedef struct dmlk_view {
    uint8_t *base;
    uint64_t byte_size; /* bytes from base that belong to the tensor */
    uint32_t type;      /* enum dmlk_type */
    uint32_t rank;      /* 1 .. DMLK_MAX_RANK */
    int64_t sizes[8];
    int64_t strides[8]; /* in elements */
    uint64_t address;   /* GPU virtual address of base */
    uint32_t access;    /* enum dmlk_access */
    uint32_t reserved;
} dmlk_view;

enum dmlk_status {
    DMLK_OK = 0,
    DMLK_BAD_PACKET = 1,      /* packet does not decode: size, kernel number, rank */
    DMLK_BAD_ADDRESS = 2,     /* in no live allocation, or not aligned to the elements */
    DMLK_BAD_DESCRIPTOR = 3,  /* slot never written, or of a kind that a tensor cannot use */
    DMLK_OUT_OF_RANGE = 4,    /* the tensor does not fit the range its descriptor gives */
    DMLK_NOT_IMPLEMENTED = 5, /* the kernel has no code for these types */
    DMLK_OUT_OF_MEMORY = 6,
    DMLK_STOPPED = 7,         /* the host stopped it; outputs may be partly written */
    DMLK_BAD_ACCESS = 8       /* the packet declares an output without WRITE access */
};

#define DMLK_FLAG_POISON 1 /* fill undefined contents with DMLK_POISON_BYTE */
#define DMLK_FLAG_JOINED 2 /* continues the command that the previous packet began */
#define DMLK_FLAG_FUSED 8 /* on a dispatch: the next packet is also a dispatch, and may be run together with this one */
#define DMLK_FLAG_PASSED 16 /* on a fused dispatch: only the next packet reads its output, which need not be written if both
                             * run together */
#define DMLK_FLAG_ORDER_SHIFT 16 /* the higher bits: seed of the random order in which a kernel writes several values
                                  * to one element, where that order is undefined; 0: logical order */
#define DMLK_POISON_BYTE 203 /* 0xCB */

struct dmlk_fault;
struct dmlk_followers;

/* The arguments of a kernel. */
typedef struct dmlk_call {
    const dmlk_view *views;
    uint32_t view_count;
    uint32_t flags; /* DMLK_FLAG_* */
    const void *constants;
    uint64_t constants_size;
    struct dmlk_fault *fault; /* where a kernel reports that it defined only part of an output; see dmlk_define_part */
    struct dmlk_followers *followers; /* functions that it may run on its output (see followers.h), or NULL */
} dmlk_call;

/* --- binary formats shared by host and device (little endian) --- */

enum dmlk_descriptor_kind {
    DMLK_DESCRIPTOR_UNWRITTEN = 0,
    DMLK_DESCRIPTOR_CBV = 1,
    DMLK_DESCRIPTOR_SRV = 2,
    DMLK_DESCRIPTOR_UAV = 3
};

#define DMLK_DESCRIPTOR_RAW 1 /* dmlk_descriptor.flags */

/* 32 bytes in descriptor-heap memory.  address == 0: null descriptor. */
typedef struct dmlk_descriptor {
    uint8_t kind;
    uint8_t flags;
    uint16_t stride; /* structured buffers: bytes per element */
    uint32_t format; /* DXGI_FORMAT */
    uint64_t address;
    uint64_t size; /* bytes */
    uint64_t counter_address;
} dmlk_descriptor;

#define DMLK_SLOT_NONE 4294967295 /* dmlk_tensor.slot: absent optional tensor */

enum dmlk_access { DMLK_READ = 1, DMLK_WRITE = 2, DMLK_READ_WRITE = 3 };

/* One tensor of a dispatch packet: its descriptor's slot in the table, and its layout. */
typedef struct dmlk_tensor {
    uint32_t slot;
    uint32_t access;
    uint32_t type;
    uint32_t rank;
    uint64_t offset;    /* bytes from the start of the descriptor's range */
    uint64_t byte_size; /* TotalTensorSizeInBytes */
    uint32_t sizes[8];
    uint32_t strides[8];
} dmlk_tensor;

#define DMLK_OPCODE_DISPATCH 1
#define DMLK_OPCODE_BARRIER 4
#define DMLK_OPCODE_SET_HEAPS 9 /* followed by the number of heaps, 32 bits of padding and their addresses */
#define DMLK_BARRIER_SIZE 40 /* of the whole packet */
#define DMLK_BARRIER_KIND_AT 8 /* offsets in the packet: D3D12_RESOURCE_BARRIER_TYPE, 32 bits */
#define DMLK_BARRIER_ADDRESS_AT 16 /* the resource, 64 bits; 0: any */
#define DMLK_BARRIER_UAV 2
#define DMLK_BYTES_PER_TICK 64 /* of the virtual clock */

/* Header of a dispatch packet, followed by `tensor_count` dmlk_tensor and then the constants. */
typedef struct dmlk_dispatch_header {
    uint32_t opcode;
    uint32_t size; /* of the whole packet, multiple of 8 */
    uint32_t kernel;
    uint32_t flags;
    uint64_t table; /* GPU descriptor handle of slot 0 */
    uint32_t tensor_count;
    uint32_t constants_size;
} dmlk_dispatch_header;

/* One live allocation: GPU virtual addresses [address, address + size), mapped at `host`. */
typedef struct dmlk_segment {
    uint64_t address;
    uint64_t size;
    uint8_t *host;
} dmlk_segment;

/* Why a dispatch could not run; or, if it did, which output it defined only in part: the first `partial_count`
 * indices of one dimension of tensor `partial_tensor`; the rest is undefined. */
typedef struct dmlk_fault {
    uint32_t status; /* enum dmlk_status */
    uint32_t tensor; /* index in the packet */
    uint32_t slot;   /* descriptor slot */
    uint32_t ran;    /* packets that were executed */
    uint64_t address; /* GPU virtual address concerned */
    uint64_t needed;  /* bytes */
    uint64_t given;   /* bytes */
    uint32_t partial_tensor; /* DMLK_SLOT_NONE: all outputs are defined */
    uint32_t partial_dimension;
    uint64_t partial_count;
    uint64_t ran_bytes; /* size of the packets that were executed */
    uint64_t ticks;     /* time that moving their tensors takes, rounded up for each packet */
} dmlk_fault;

/* Decodes a dispatch packet, reads its descriptors from descriptor-heap memory, translates their addresses (segments
 * are sorted by address) and calls the kernel.  Returns an enum dmlk_status, with details in *fault; nothing was
 * written unless it is DMLK_OK or DMLK_STOPPED.  If `packet_size` exceeds the size of the packet and it has
 * DMLK_FLAG_FUSED, the packets after it may run too: fault->ran is the number that did. */
int dmlk_dispatch(const uint8_t *packet, uint64_t packet_size, const dmlk_segment *segments,
                  uint64_t segment_count, dmlk_fault *fault);

/* Runs the dispatch, barrier or SET_DESCRIPTOR_HEAPS packet at `packets`, and those after it, until another kind of
 * packet or a malformed one follows, a dispatch fails or defines only a part of an output, or CLOCK_MONOTONIC reaches
 * `until` seconds.  Returns the same as dmlk_dispatch; fault->ran counts the packets before the one that failed, and is
 * 0 if the first one does not set heaps although it has that opcode. */
int dmlk_run_packets(const uint8_t *packets, uint64_t size, const dmlk_segment *segments, uint64_t segment_count, double until,
             dmlk_fault *fault);

/* Sets the callback that a long-running kernel calls about every 100 ms, on the thread that called dmlk_dispatch: a
 * nonzero result stops the kernel.  NULL, the default: kernels are never stopped. */
void dmlk_set_poll(int (*poll)(void));

/* The number of threads that kernels use: the one given last to dmlk_set_threads, else OMP_NUM_THREADS, else one for
 * each CPU that the affinity mask and the cgroup's quota of the process allow.  From 1 to 512. */
int dmlk_threads(void);
void dmlk_set_threads(int count);

/* How often kernels have split their work between threads, and into how many parts altogether. */
void dmlk_pool_counts(int64_t *calls, int64_t *parts);

/* --- footprints: the memory that a command accesses --- */

/* Further values of dmlk_footprint.access, after those of enum dmlk_access. */
#define DMLK_UNDEFINE 4 /* the contents become undefined */
#define DMLK_MAYBE_READ 8 /* never with other flags: some of these elements are read, it is not known which */

/* Elements of `bits` bits, sum(i * stride) elements after `address`: a pattern, not a byte range.  It may be part
 * of a tensor: along dimension d, index i is the tensor's index first + i * (1 + skipped). */
typedef struct dmlk_footprint {
    uint64_t address; /* GPU virtual address of element 0 */
    uint64_t end;     /* GPU virtual address of the byte after the last element */
    uint32_t operand; /* tensor of the packet */
    uint32_t access;  /* DMLK_READ | DMLK_WRITE | DMLK_UNDEFINE, or DMLK_MAYBE_READ */
    uint32_t bits;
    uint32_t rank; /* 0: one element */
    uint64_t sizes[8];
    uint64_t strides[8]; /* in elements */
    uint32_t first[8];
    uint32_t skipped[8];
} dmlk_footprint;

/* The footprints of the dispatch in the packet, with its descriptors as they are now; `out` receives the first
 * `capacity` of them.  Absent tensors, tensors without a usable descriptor (dispatching reports those) and inputs
 * that the kernel does not read have none.  Reads that do not form a single pattern give several footprints with the
 * same operand.  If `capacity` is too small, or a window has too many gaps, they are DMLK_MAYBE_READ, and cover more.
 *
 * Reads may depend on the elements of another tensor.  These are inspected, unless `planned` says that they may
 * change before the dispatch runs.  In that case, and if `capacity` is too small, one DMLK_MAYBE_READ footprint
 * covers the whole tensor.  Returns how many there are (at most `capacity`, or one per tensor), -1: the packet does
 * not decode, or the host stopped the search. */
int dmlk_footprints(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                    int planned, dmlk_footprint *out, uint32_t capacity);

/* Of how many packets from `packets` on, at most `most`, it is known before the first one runs what they access: UAV
 * barriers on any resource, and dispatches whose footprints do not depend on the elements of tensors.  counts[i] is
 * the number of footprints of packet i, at most one for each tensor and `pieces`; `out` receives them one packet after
 * another, at most `capacity`. */
uint32_t dmlk_find_stretch(const uint8_t *packets, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                           uint32_t pieces, dmlk_footprint *out, uint32_t capacity, uint32_t *counts, uint32_t most);

/* Whether the footprints share a byte in [low, high).  `shift` is added to b's addresses, to map them to a's. 1:
 * *byte is the lowest shared byte; 0: none; -1: a footprint is malformed (rank, bits, a size of 0, addresses past
 * 64 bits), or memory ran out.  Exact for all layouts. */
int dmlk_footprints_meet(const dmlk_footprint *a, const dmlk_footprint *b, int64_t shift, uint64_t low,
                         uint64_t high, uint64_t *byte);

/* Index of the first of entries[start .. count - 1] that shares a byte with `a`, where at least one of the two
 * writes it or makes it undefined; *byte is the lowest.  -1: none.  Entries with skip[i] != 0 are skipped (NULL:
 * none). */
int64_t dmlk_footprints_find(const dmlk_footprint *a, const dmlk_footprint *entries, const uint8_t *skip,
                             uint64_t start, uint64_t count, uint64_t *byte);

/* Whether an element contains the byte, or half of it: 1, 0, or -1 in the same cases as dmlk_footprints_meet. */
int dmlk_footprint_holds(const dmlk_footprint *f, uint64_t address);

/* The same; if 1, index[0 .. rank - 1] are the tensor coordinates of the first such element, last axis fastest. */
int dmlk_footprint_index(const dmlk_footprint *f, uint64_t address, uint64_t *index);

/* --- shadow memory: one bit per byte, set if it was written --- */

/* The bits of one live allocation, 1: written.  The bit of the byte at `address` has index `first`, counted from
 * the lowest bit of bits[0].  null_tiles has a 1 for each NULL 64 KiB tile of a reserved range (`first` is then 0;
 * NULL: no such tiles); their bits are ignored and their bytes count as written. full[1 + i] != 0: the
 * DMLK_SHADOW_CHUNK_WORDS words from DMLK_SHADOW_CHUNK_WORDS * i on are all ones; they must not be cleared through
 * another shadow, unless full[0] != 0, which disables the use of `full`.  NULL: no such information. */
#define DMLK_SHADOW_CHUNK_WORDS 64
typedef struct dmlk_shadow {
    uint64_t address;
    uint64_t size;
    uint64_t *bits;
    uint64_t first;
    const uint64_t *null_tiles;
    uint8_t *full;
} dmlk_shadow;

/* These return an enum dmlk_status: DMLK_BAD_ADDRESS when an address is outside all shadows (sorted by address),
 * DMLK_BAD_PACKET when a footprint is malformed, DMLK_OUT_OF_MEMORY; nothing was changed then. */

/* *address: the lowest unwritten byte of the footprint, or UINT64_MAX. */
int dmlk_shadow_first_unwritten(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f,
                                uint64_t *address);

/* Marks all bytes of the footprint as written, or as undefined. */
int dmlk_shadow_mark_written(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f);
int dmlk_shadow_mark_undefined(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f);

/* Applies all accesses of a command: marks the bytes that it writes as written, and those that it undefines as
 * unwritten.  With `look`, only if all bytes that it reads were written.  1: done; 2: done, and some bytes became
 * undefined.  0: a read byte was unwritten, or an access is malformed or has no shadow, and nothing was changed; or
 * memory ran out, and only some of the accesses may have been applied. */
int dmlk_shadow_command(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *accesses, uint32_t n,
                        int look);

/* Copies the bits of `size` copied bytes; the ranges may overlap.  *cleared: some were unwritten. */
int dmlk_shadow_copy(const dmlk_shadow *shadows, uint64_t count, uint64_t destination, uint64_t source,
                     uint64_t size, int *cleared);

/* Whether the byte at `address` was written, and the address (at most `end`) up to which this state continues. */
int dmlk_shadow_run(const dmlk_shadow *shadows, uint64_t count, uint64_t address, uint64_t end, int *written,
                    uint64_t *run_end);

/* --- indices that kernels read from memory --- */

/* The value of one element, exactly, for floats and integers of every size. */
typedef union dmlk_number {
    double f;
    int64_t i;
    uint64_t u;
} dmlk_number;

/* Elements of tensor `indices` index an axis of tensor `target`, or are lengths of parts of it, and some are out of
 * range. */
typedef struct dmlk_bad_index {
    uint32_t indices; /* tensors of the packet */
    uint32_t target;
    uint32_t axis;
    uint32_t is_signed;
    uint32_t is_length; /* lengths are 0 .. size */
    uint32_t is_float;
    uint64_t size;     /* of the axis: indices are 0 .. size - 1, and signed ones -size .. -1 too */
    uint64_t count;    /* of bad indices */
    uint64_t element;  /* number of the first bad one, last axis fastest */
    dmlk_number value; /* of the first bad one */
} dmlk_bad_index;

/* 1: the dispatch in the packet would read indices outside their axis; 0: it would not, or it has another error,
 * which dispatching reports; -1: the host stopped the search. */
int dmlk_find_bad_index(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                        dmlk_bad_index *out);

/* Two elements of tensor `values` that differ and are written to one element of tensor `target`, since the indices that
 * belong to them are equal.  Elements are numbers, last axis fastest. */
typedef struct dmlk_scatter_race {
    uint32_t indices; /* tensors of the packet */
    uint32_t values;
    uint32_t target;
    uint32_t reserved;
    uint64_t count;   /* of elements, or blocks of elements with the same indices, that receive different values */
    uint64_t element; /* of the target: the first that does */
    uint64_t index_elements[2]; /* of the indices: the first element of each index tuple */
    uint64_t value_elements[2];
    dmlk_number written[2];
} dmlk_scatter_race;

/* 1: the dispatch in the packet would write such elements; 0: it would not, or it has another error, which dispatching
 * reports; -1: the host stopped the search. */
int dmlk_find_scatter_race(const uint8_t *packet, uint64_t size, const dmlk_segment *segments,
                           uint64_t segment_count, dmlk_scatter_race *out);

/* --- sanitizer: kernels with every load and store checked --- */

enum dmlk_finding_kind {
    DMLK_MEM_OOB_READ = 0, /* outside the view's bytes */
    DMLK_MEM_OOB_WRITE = 1,
    DMLK_MEM_GAP_READ = 2, /* inside, but includes bytes that belong to no element */
    DMLK_MEM_GAP_WRITE = 3,
    DMLK_MEM_INPUT_WRITE = 4, /* through a view that is only read */
    DMLK_MEM_MISALIGNED = 5,  /* not a multiple of the view's element size, or of the access size */
    DMLK_MEM_UNINIT_READ = 6, /* reads bytes of an input that dmlk_checker.written reports as never written */
    DMLK_MEM_POISON_READ = 7, /* reads bytes of an output that this dispatch has not stored */
    DMLK_MEM_UNINIT_OUT = 8,  /* elements of an output were never stored */
    DMLK_MEM_DIFFERS = 9,     /* bytes that the fast build of the kernel wrote differently */
    DMLK_FINDING_KINDS = 10
};

/* The findings of one kind: their number, and the first. */
typedef struct dmlk_finding {
    uint64_t count;    /* of accesses; for UNINIT_OUT, of elements; for DIFFERS, of bytes */
    uint32_t kernel;
    uint32_t tensor;   /* of the packet */
    int64_t offset;    /* in bytes from the tensor's first byte */
    uint64_t address;  /* GPU virtual address */
    uint32_t size;     /* bytes */
    uint32_t reserved;
    uint64_t access;   /* number of earlier loads and stores of the dispatch */
    uint64_t dispatch; /* number of earlier checked dispatches */
} dmlk_finding;

typedef struct dmlk_checker {
    /* Sets bit i % 8 of bits[i / 8] if byte address + i was ever written; NULL: all were. */
    void (*written)(void *context, uint64_t address, uint64_t size, uint8_t *bits);
    void *context;
    uint64_t dispatches;      /* checked so far */
    dmlk_finding findings[10]; /* by enum dmlk_finding_kind */
} dmlk_checker;

/* From now on dmlk_dispatch runs kernels of the calling thread checked and adds its findings to `checker`; NULL,
 * the default: unchecked.  Returns the previous checker.  For tests: takes twice the memory of the outputs, and
 * many times as long. */
dmlk_checker *dmlk_set_checker(dmlk_checker *checker);

/* --- classes of element values, for checks of values --- */

enum dmlk_value_class {
    DMLK_VALUE_NAN = 0,
    DMLK_VALUE_INFINITY = 1,
    DMLK_VALUE_ZERO = 2,    /* of either sign */
    DMLK_VALUE_LOWEST = 3,  /* the lowest finite number of the type ... */
    DMLK_VALUE_HIGHEST = 4, /* ... and the highest: where results saturate */
    DMLK_VALUE_CLASSES = 5
};

typedef struct dmlk_values {
    uint64_t count;     /* elements; repeated ones (stride 0) count each time */
    uint64_t counts[5]; /* by enum dmlk_value_class */
    uint64_t firsts[5]; /* number of the first element of the class, last axis fastest; UINT64_MAX: none */
    uint32_t has_finite;
    uint32_t reserved;
    dmlk_number min, max; /* of the finite elements */
} dmlk_values;

/* These return an enum dmlk_status: DMLK_BAD_PACKET, DMLK_BAD_ADDRESS or DMLK_OUT_OF_RANGE for a view that is
 * malformed, misaligned, or exceeds its bytes; DMLK_NOT_IMPLEMENTED for elements of less than a byte. */
int dmlk_scan_values(const dmlk_view *view, dmlk_values *out);

/* The input elements that the elements of an output were computed from: output element i depends on all elements of
 * `inner`, starting at element i of `outer`.  Element-wise: inner has one element.  A matrix of a product: outer
 * steps along its rows and has stride 0 along the output's columns, inner is a row. */
typedef struct dmlk_source {
    dmlk_view outer; /* with the sizes of the output */
    dmlk_view inner; /* base and byte_size are those of outer */
} dmlk_source;

/* *index: the first element of the output from number `from` on that is of one of the classes (bits 1 << class)
 * and was computed from finite elements only; UINT64_MAX: none. */
int dmlk_find_born(const dmlk_view *output, uint32_t classes, const dmlk_source *sources, uint32_t count,
                   uint64_t from, uint64_t *index);

/* Element number `index`, last axis fastest.  DMLK_OUT_OF_RANGE: there are fewer elements. */
int dmlk_read_element(const dmlk_view *view, uint64_t index, dmlk_number *out);

/* Kernels by number: 0 .. dmlk_kernel_count() - 1, in the order of the list that the build generates.  The name is
 * the stem of the file in operators/, or of an entry in operators/<family>/functions.inc.  The constants of a
 * kernel are a struct dmlk_<family>, if it has constants; without a table the family is the name. */
uint32_t dmlk_kernel_count(void);
const char *dmlk_kernel_name(uint32_t kernel);
const char *dmlk_kernel_family(uint32_t kernel);

/* The instruction set of the tuned kernels: the best that the CPU supports, or the one that the environment variable
 * DMLEMU_ISA names, if supported. */
const char *dmlk_instructions(void);

/* The name of instruction set `number`, and whether this CPU supports it; NULL: there are no more. */
const char *dmlk_instruction_set(uint32_t number, int *is_supported);

/* Whether the kernel reads indices from a tensor. */
int dmlk_kernel_indexes(uint32_t kernel);

/* Whether the kernel may write several values to one element. */
int dmlk_kernel_races(uint32_t kernel);

/* Whether the kernel reports which elements of its inputs it reads, so that one input may have several footprints. */
int dmlk_kernel_selects(uint32_t kernel);

/* --- host resources: each is owned by a struct from its creation on, and released by its end function --- */

/* Host addresses and the mappings on them.  All zero: none. */
typedef struct dmlk_range {
    uint8_t *host;
    uint64_t size;
    int64_t mappings;   /* number of process mappings counted for it */
    int32_t file_owner; /* the process that frees the file's bytes with the range; 0: none */
    int32_t reserved;
} dmlk_range;

#define DMLK_TOO_MANY_MAPPINGS 4096

/* These return 0, or an errno or DMLK_TOO_MANY_MAPPINGS (not an errno value), and then nothing has changed. `fd` is a
 * file whose bytes from `offset` on are mapped, or -1 for private zeros, in large pages where the host has them if
 * `large`..  `mappings`: the number of mappings of the range afterwards..  dmlk_range_put remaps part of a range. */
int dmlk_range_map(dmlk_range *range, uint64_t size, int fd, uint64_t offset, int64_t mappings, int large);
int dmlk_range_put(dmlk_range *range, uint64_t start, uint64_t size, int fd, uint64_t offset, int64_t mappings);

/* Counts `mappings` against the limit, without mapping anything, until the range ends. */
int dmlk_range_promise(dmlk_range *range, int64_t mappings);

/* Resets private zeros to 0. */
void dmlk_range_clear(const dmlk_range *range, uint64_t start, uint64_t size);
void dmlk_range_end(dmlk_range *range);

/* Limits the number of mappings of all ranges: at the system's limit even malloc fails. */
void dmlk_limit_mappings(int64_t limit);
int64_t dmlk_count_mappings(void);

/* The address of this process's id; after fork(), the child finds its own id there from the start. */
const int32_t *dmlk_process(void);

/* Bytes of a budget: dmlk_charge adds `size` to `used` and stores it in `charge`; dmlk_charge_end subtracts it. */
void dmlk_charge(int64_t *used, int64_t *charge, int64_t size);
void dmlk_charge_end(int64_t *used, int64_t *charge);

/* An open file.  All zero: none. */
typedef struct dmlk_file {
    int32_t fd;
    int32_t is_open;
} dmlk_file;

/* Creates a memory file; duplicates a file descriptor.  Both return 0 or an errno. */
int dmlk_file_create(dmlk_file *file, const char *name);
int dmlk_file_duplicate(dmlk_file *file, int fd);
void dmlk_file_end(dmlk_file *file);

/* cffi: end */

#endif
