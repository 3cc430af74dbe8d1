/* dmlk.h - the C side of the emulated GPU: strided views and the kernels that loop over them.
 *
 * This header is read twice: by the C compiler, and by cffi (build_ffi.py passes everything
 * between "cffi: begin" and "cffi: end" to ffi.cdef).  Keep that part free of preprocessor lines
 * other than `#define NAME number`.
 *
 * C11; no Python and no API object is known here. */
#ifndef DMLK_H
#define DMLK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cffi: begin */

#define DMLK_MAX_RANK 8

/* Numbers are those of DML_TENSOR_DATA_TYPE. */
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

/* One strided tensor in host memory.  Element (i0, i1, ...) stands `sum(i * stride)` elements
 * after `base`; stride 0 repeats (broadcast).  base == NULL: the optional tensor is absent. */
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
    DMLK_STOPPED = 7,         /* the host ended it; its outputs may be half written */
    DMLK_BAD_ACCESS = 8       /* the packet gives an output no access that writes */
};

#define DMLK_FLAG_POISON 1 /* fill what the documents call undefined with DMLK_POISON_BYTE */
#define DMLK_FLAG_JOINED 2 /* a further part of what the packet before began */
#define DMLK_POISON_BYTE 203 /* 0xCB */

struct dmlk_fault;

/* What a kernel gets. */
typedef struct dmlk_call {
    const dmlk_view *views;
    uint32_t view_count;
    uint32_t flags; /* DMLK_FLAG_* */
    const void *constants;
    uint64_t constants_size;
    struct dmlk_fault *fault; /* a kernel only tells which part of an output it defined */
} dmlk_call;

/* --- what host and device share as bytes (little endian) --- */

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

/* One tensor of a dispatch packet: which descriptor of the table holds it, and its layout. */
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

/* Header of a dispatch packet; `tensor_count` dmlk_tensor and then the constants follow it. */
typedef struct dmlk_dispatch_header {
    uint32_t opcode;
    uint32_t size; /* of the whole packet, multiple of 8 */
    uint32_t kernel;
    uint32_t flags;
    uint64_t table; /* GPU descriptor handle of slot 0 */
    uint32_t tensor_count;
    uint32_t constants_size;
} dmlk_dispatch_header;

/* One live allocation: GPU virtual addresses [address, address + size) stand at `host`. */
typedef struct dmlk_segment {
    uint64_t address;
    uint64_t size;
    uint8_t *host;
} dmlk_segment;

/* Why a dispatch could not run; or, if it did, which output it defined only in part: of tensor
 * `partial_tensor` the first `partial_count` indices of one dimension, the rest is undefined. */
typedef struct dmlk_fault {
    uint32_t status; /* enum dmlk_status */
    uint32_t tensor; /* index in the packet */
    uint32_t slot;   /* descriptor slot */
    uint32_t reserved;
    uint64_t address; /* GPU virtual address concerned */
    uint64_t needed;  /* bytes */
    uint64_t given;   /* bytes */
    uint32_t partial_tensor; /* DMLK_SLOT_NONE: all outputs are defined */
    uint32_t partial_dimension;
    uint64_t partial_count;
} dmlk_fault;

/* Decodes a dispatch packet, reads its descriptors from descriptor-heap memory, translates their
 * addresses (segments are sorted by address) and calls the kernel.  Returns an enum dmlk_status and the
 * details in *fault; when it is not DMLK_OK nothing was written, DMLK_STOPPED aside. */
int dmlk_dispatch(const uint8_t *packet, uint64_t packet_size, const dmlk_segment *segments,
                  uint64_t segment_count, dmlk_fault *fault);

/* Sets what a kernel that takes long calls about every 100 ms, on the thread that called dmlk_dispatch:
 * not 0 ends the kernel.  NULL, as at the start: kernels are never ended. */
void dmlk_set_poll(int (*poll)(void));

/* --- what a command touches, for those who check it --- */

#define DMLK_UNDEFINE 4 /* dmlk_footprint.access, beside enum dmlk_access: contents become undefined */
#define DMLK_MAYBE_READ 8 /* or alone: some of these elements are read; which ones is not known */

/* Elements of `bits` bits, sum(i * stride) elements after `address`: a pattern, not a byte range.  It may be a
 * part of a tensor: along dimension d, index i is that of the tensor's element first + i * (1 + skipped). */
typedef struct dmlk_footprint {
    uint64_t address; /* GPU virtual address of element 0 */
    uint64_t end;     /* of the byte after the last element */
    uint32_t operand; /* tensor of the packet */
    uint32_t access;  /* DMLK_READ | DMLK_WRITE | DMLK_UNDEFINE, or DMLK_MAYBE_READ */
    uint32_t bits;
    uint32_t rank; /* 0: one element */
    uint64_t sizes[8];
    uint64_t strides[8]; /* in elements */
    uint32_t first[8];
    uint32_t skipped[8];
} dmlk_footprint;

/* What the dispatch in the packet would touch, with its descriptors as they are now; `out` gets the first
 * `capacity` of them.  Tensors that are absent, or have no usable descriptor, have none: dispatching tells; nor
 * do inputs that the kernel does not read.  What it reads may be no single pattern: then there are several with
 * the same operand, or, where `capacity` has no room for so many, fewer that cover a little more.
 *
 * What it reads may depend on the elements of another tensor.  They are looked at, unless `planned` tells that they
 * may be others by the time it is dispatched.  Then, and where there is no room for so many footprints, there is one
 * for the whole tensor with DMLK_MAYBE_READ.
 * Returns how many there are (at most `capacity`, or one per tensor), -1: the packet does not decode. */
int dmlk_footprints(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                    int planned, dmlk_footprint *out, uint32_t capacity);

/* Do the footprints share a byte in [low, high)?  `shift` is added to b's addresses: where a sees the memory
 * of b.  1: *byte is the lowest one; 0: no; -1: a footprint has no meaning (rank, bits, a size of 0, addresses
 * past 64 bits), or only more memory than there is would tell.  Exact, whatever the layouts. */
int dmlk_footprints_meet(const dmlk_footprint *a, const dmlk_footprint *b, int64_t shift, uint64_t low,
                         uint64_t high, uint64_t *byte);

/* Index of the first of entries[start .. count - 1] that shares a byte with `a`, one of both writing it or
 * making it undefined; *byte is the lowest.  -1: none.  Entries with skip[i] != 0 are left out (NULL: none). */
int64_t dmlk_footprints_find(const dmlk_footprint *a, const dmlk_footprint *entries, const uint8_t *skip,
                             uint64_t start, uint64_t count, uint64_t *byte);

/* Does an element contain that byte, wholly or a half of it?  1, 0 or -1, as dmlk_footprints_meet. */
int dmlk_footprint_holds(const dmlk_footprint *f, uint64_t address);

/* The same; for 1, index[0 .. rank - 1] are the coordinates in the tensor of the first such element, last axis
 * fastest. */
int dmlk_footprint_index(const dmlk_footprint *f, uint64_t address, uint64_t *index);

/* --- which bytes of memory were written: a bit for each --- */

/* The bits of one live allocation's bytes, 1: written; that of the byte at `address` has the number `first`,
 * from the lowest bit of bits[0] on.  Bits of a reserved range's 64 KiB tiles that have no memory (bit 1 in
 * null_tiles; then `first` is 0; NULL: there are none) mean nothing: such bytes count as written.
 * full[1 + i] != 0: words DMLK_SHADOW_CHUNK_WORDS * i and so many from there on are all ones; none may be cleared
 * through another shadow, unless full[0] != 0, then nobody relies on it.  NULL: nothing is known of any. */
#define DMLK_SHADOW_CHUNK_WORDS 64
typedef struct dmlk_shadow {
    uint64_t address;
    uint64_t size;
    uint64_t *bits;
    uint64_t first;
    const uint64_t *null_tiles;
    uint8_t *full;
} dmlk_shadow;

/* These return an enum dmlk_status: DMLK_BAD_ADDRESS when something lies not in one of the shadows (sorted by
 * address), DMLK_BAD_PACKET when a footprint has no meaning, DMLK_OUT_OF_MEMORY; nothing was changed then. */

/* *address: the lowest byte of the footprint that was not written, or UINT64_MAX. */
int dmlk_shadow_first_unwritten(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f,
                                uint64_t *address);

/* All bytes of the footprint were written, or became undefined. */
int dmlk_shadow_mark_written(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f);
int dmlk_shadow_mark_undefined(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f);

/* All accesses of a command: what it writes was written, what it undefines was not.  If `look`, only if all
 * that it reads was written.  0: it is not so, or an access has no meaning or no shadow, and nothing was
 * changed; or memory ran out, and something may have been.  2: done, and it has undefined something. */
int dmlk_shadow_command(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *accesses, uint32_t n,
                        int look);

/* `size` bytes were copied; the ranges may overlap.  *cleared: some had not been written. */
int dmlk_shadow_copy(const dmlk_shadow *shadows, uint64_t count, uint64_t destination, uint64_t source,
                     uint64_t size, int *cleared);

/* Was the byte at `address` written, and up to which address (at most `end`) is it so too? */
int dmlk_shadow_run(const dmlk_shadow *shadows, uint64_t count, uint64_t address, uint64_t end, int *written,
                    uint64_t *run_end);

/* --- indices that kernels read from memory --- */

/* An element: floats and integers of every size are exactly one of these. */
typedef union dmlk_number {
    double f;
    int64_t i;
    uint64_t u;
} dmlk_number;

/* Elements of tensor `indices` choose along an axis of tensor `target`, and some choose what is not there. */
typedef struct dmlk_bad_index {
    uint32_t indices; /* tensors of the packet */
    uint32_t target;
    uint32_t axis;
    uint32_t is_signed;
    uint64_t size;     /* of the axis: indices are 0 .. size - 1, and signed ones -size .. -1 too */
    uint64_t count;    /* of bad ones */
    uint64_t element;  /* number of the first one, last axis fastest */
    dmlk_number value; /* of it */
} dmlk_bad_index;

/* 1: the dispatch in the packet would find indices outside of their axis; 0: it would not, or something else is wrong
 * with it, which dispatching tells. */
int dmlk_find_bad_index(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                        dmlk_bad_index *out);

/* --- kernels whose every load and store is tested --- */

enum dmlk_finding_kind {
    DMLK_MEM_OOB_READ = 0, /* outside of the view's bytes ... */
    DMLK_MEM_OOB_WRITE = 1,
    DMLK_MEM_GAP_READ = 2, /* ... inside, but not only bytes of elements ... */
    DMLK_MEM_GAP_WRITE = 3,
    DMLK_MEM_INPUT_WRITE = 4, /* through a view that is only read */
    DMLK_MEM_MISALIGNED = 5,  /* no multiple of the view's element size, or of the access's own */
    DMLK_MEM_UNINIT_READ = 6, /* of an input's bytes that `written` does not know */
    DMLK_MEM_POISON_READ = 7, /* of an output's bytes that this dispatch did not store before */
    DMLK_MEM_UNINIT_OUT = 8,  /* elements of an output were never stored */
    DMLK_MEM_DIFFERS = 9,     /* bytes that the fast build of the kernel wrote otherwise */
    DMLK_FINDING_KINDS = 10
};

/* What was found of one kind: how often, and the first. */
typedef struct dmlk_finding {
    uint64_t count;    /* accesses; of UNINIT_OUT elements, of DIFFERS bytes */
    uint32_t kernel;
    uint32_t tensor;   /* of the packet */
    int64_t offset;    /* bytes from the tensor's first */
    uint64_t address;  /* GPU virtual address */
    uint32_t size;     /* bytes */
    uint32_t reserved;
    uint64_t access;   /* number of loads and stores of the dispatch before it */
    uint64_t dispatch; /* number of checked dispatches before its own */
} dmlk_finding;

typedef struct dmlk_checker {
    /* Sets bit i % 8 of bits[i / 8] if byte address + i was ever written; NULL: all were. */
    void (*written)(void *context, uint64_t address, uint64_t size, uint8_t *bits);
    void *context;
    uint64_t dispatches;      /* so far */
    dmlk_finding findings[10]; /* by enum dmlk_finding_kind */
} dmlk_checker;

/* From now on dmlk_dispatch runs kernels of the calling thread checked, and adds to `checker` what it finds;
 * NULL, as at the start: it does not.  Returns the checker before.  For tests: takes twice the memory of the
 * outputs, and many times as long. */
dmlk_checker *dmlk_set_checker(dmlk_checker *checker);

/* --- what the elements of a tensor are, for those who check values --- */

enum dmlk_value_class {
    DMLK_VALUE_NAN = 0,
    DMLK_VALUE_INFINITY = 1,
    DMLK_VALUE_ZERO = 2,    /* of either sign */
    DMLK_VALUE_LOWEST = 3,  /* the least number that the type has, infinity aside ... */
    DMLK_VALUE_HIGHEST = 4, /* ... and the greatest: where results saturate */
    DMLK_VALUE_CLASSES = 5
};

typedef struct dmlk_values {
    uint64_t count;     /* elements; what is repeated (stride 0) counts each time */
    uint64_t counts[5]; /* by enum dmlk_value_class */
    uint64_t firsts[5]; /* number of the first one, last axis fastest; UINT64_MAX: none */
    uint32_t has_finite;
    uint32_t reserved;
    dmlk_number min, max; /* of the finite elements */
} dmlk_values;

/* These return an enum dmlk_status: DMLK_BAD_PACKET, DMLK_BAD_ADDRESS or DMLK_OUT_OF_RANGE for a view that makes
 * no sense, is not aligned, or leaves its bytes; DMLK_NOT_IMPLEMENTED for elements of less than a byte. */
int dmlk_scan_values(const dmlk_view *view, dmlk_values *out);

/* What the elements of an output were made from: that at index i from all elements of `inner` beginning where
 * element i of `outer` stands.  Element-wise: inner has one element.  A matrix of a product: outer steps along
 * its rows and not (stride 0) along the output's columns, inner is a row. */
typedef struct dmlk_source {
    dmlk_view outer; /* with the sizes of the output */
    dmlk_view inner; /* base and byte_size are those of outer */
} dmlk_source;

/* *index: the first element of the output from number `from` on that is of one of the classes (bits 1 << class)
 * and was made from finite elements alone; UINT64_MAX: none. */
int dmlk_find_born(const dmlk_view *output, uint32_t classes, const dmlk_source *sources, uint32_t count,
                   uint64_t from, uint64_t *index);

/* Element number `index`, last axis fastest.  DMLK_OUT_OF_RANGE: there are not so many. */
int dmlk_read_element(const dmlk_view *view, uint64_t index, dmlk_number *out);

/* Kernels by number: 0 .. dmlk_kernel_count() - 1, in the order of the list that the build makes.  The name is the
 * stem of the file in operators/, or that of a line in operators/<family>/functions.inc.  The constants of a kernel are
 * a struct dmlk_<family>, where there is one; without a table the family is the name. */
uint32_t dmlk_kernel_count(void);
const char *dmlk_kernel_name(uint32_t kernel);
const char *dmlk_kernel_family(uint32_t kernel);

/* Which instructions the tuned kernels use: "generic", "avx2" or "avx512", the best that the CPU has, or what the
 * environment variable DMLEMU_ISA names, if the CPU has that. */
const char *dmlk_instructions(void);

/* Does it read indices from a tensor? */
int dmlk_kernel_indexes(uint32_t kernel);

/* Does it tell which elements of its inputs it reads, so that there may be several footprints for one? */
int dmlk_kernel_selects(uint32_t kernel);

/* --- what the host gives: each is owned by a struct from the moment that it exists, and its end gives it back --- */

/* Host addresses and the mappings on them.  All zero: none. */
typedef struct dmlk_range {
    uint8_t *host;
    uint64_t size;
    int64_t mappings;   /* how many of the process's are counted for it */
    int32_t file_owner; /* the process whose file's bytes are freed with the range; 0: none are */
    int32_t reserved;
} dmlk_range;

#define DMLK_TOO_MANY_MAPPINGS 4096

/* These return 0, or an errno or DMLK_TOO_MANY_MAPPINGS (a number that no errno has), and then nothing has changed.
 * `fd` is a file whose bytes from `offset` on are mapped, or -1 for private zeros, in large pages where the host has
 * them if `large`.  `mappings`: how many the range consists of afterwards.  dmlk_range_put maps a part of it anew. */
int dmlk_range_map(dmlk_range *range, uint64_t size, int fd, uint64_t offset, int64_t mappings, int large);
int dmlk_range_put(dmlk_range *range, uint64_t start, uint64_t size, int fd, uint64_t offset, int64_t mappings);

/* No addresses, but so many mappings are counted until the range ends. */
int dmlk_range_promise(dmlk_range *range, int64_t mappings);

/* Private zeros are zeros again. */
void dmlk_range_clear(const dmlk_range *range, uint64_t start, uint64_t size);
void dmlk_range_end(dmlk_range *range);

/* At the system's limit of mappings even malloc fails: this process keeps away from it. */
void dmlk_limit_mappings(int64_t limit);
int64_t dmlk_count_mappings(void);

/* An open file.  All zero: none. */
typedef struct dmlk_file {
    int32_t fd;
    int32_t is_open;
} dmlk_file;

/* A new memory file, and another number for an open file.  These return 0 or an errno. */
int dmlk_file_create(dmlk_file *file, const char *name);
int dmlk_file_duplicate(dmlk_file *file, int fd);
void dmlk_file_end(dmlk_file *file);

/* cffi: end */

#endif
