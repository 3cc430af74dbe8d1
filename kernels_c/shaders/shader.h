/* shader.h - how a compute shader runs: native code, made from its DXIL (runtime/dmlemu/shaders/lanes.py), runs one
 * group of threads; this is what it is given and what it calls.
 *
 * The lanes of a wave are elements of vectors; where several lanes are passed, the first is lane 0, and bit i of a mask
 * says whether lane i takes part.  At most DMLK_MOST_LANES. */
#ifndef DMLK_SHADER_H
#define DMLK_SHADER_H

#include <stdbool.h>
#include <stdint.h>

#include "dmlk.h"

/* cffi: begin */

#define DMLK_MOST_LANES 64
#define DMLK_MOST_SHARED 32768 /* bytes of groupshared memory that D3D12 gives a group */

/* Flags of a view.  All have one of CBV, SRV and UAV, unless they are UNUSABLE. */
#define DMLK_SHADER_ROOT 1     /* a root descriptor, which D3D12 does not bound: an access outside stops the dispatch */
#define DMLK_SHADER_UNUSABLE 2 /* the descriptor is not what the shader declares: base is NULL */
#define DMLK_SHADER_CBV 4
#define DMLK_SHADER_SRV 8
#define DMLK_SHADER_UAV 16
#define DMLK_SHADER_RAW 32

/* A view of a buffer as a shader sees it.  Reads outside of its bytes give 0, and writes are dropped. */
typedef struct dmlk_shader_view {
    uint8_t *base;    /* NULL: a null descriptor */
    uint64_t bytes;   /* of the view; of a root descriptor: from its address to the end of the resource */
    uint8_t *counter; /* of a structured UAV: 4 bytes; NULL: none */
    uint32_t stride;  /* bytes of an element of a structured or typed view; else 0 */
    uint32_t format;  /* DXGI_FORMAT of a typed view; else 0 */
    uint32_t flags; /* DMLK_SHADER_ROOT ... */
    uint32_t id; /* the caller's number for it */
} dmlk_shader_view;

/* The views of a range of registers; the first one is that of the range's first register. */
typedef struct dmlk_shader_range {
    const dmlk_shader_view *views;
    uint64_t count;
} dmlk_shader_range;

enum dmlk_shader_access { DMLK_SHADER_READ = 1, DMLK_SHADER_WRITE = 2, DMLK_SHADER_ATOMIC = 3 };

/* Why a dispatch was stopped. */
typedef struct dmlk_shader_fault {
    uint32_t kind;     /* 0: nothing; 1: an access outside of a root descriptor's resource */
    uint32_t view;     /* its id */
    uint64_t offset;   /* in bytes, from the start of the view */
    uint32_t bytes;
    uint32_t access;   /* enum dmlk_shader_access */
    uint32_t group[3]; /* SV_GroupID */
    uint32_t thread;   /* SV_GroupIndex */
    uint32_t line;     /* of the source; 0: not known */
    uint32_t reserved;
} dmlk_shader_fault;

typedef struct dmlk_shader_watch dmlk_shader_watch; /* what watches accesses; see watch.h */
struct dmlk_shader_call;

/* Runs group (x, y, z).  `shared`: the group's groupshared memory; `frames`: memory where its waves wait. */
typedef void dmlk_shader_group(const struct dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                               uint8_t *frames);

/* One dispatch. */
typedef struct dmlk_shader_call {
    dmlk_shader_group *run;
    const dmlk_shader_range *ranges; /* in the order of CompiledShader.ranges */
    const dmlk_shader_range *heap;   /* what ResourceDescriptorHeap is made of; NULL: not used */
    uint32_t groups[3];
    uint32_t flush; /* 1: denormal FLOAT32 numbers are flushed to 0 */
    uint64_t shared_bytes;
    uint64_t frame_bytes; /* of all waves of a group */
    uint64_t order;       /* 0: groups run in their order; otherwise in an order drawn from this number */
    dmlk_shader_fault *fault;
    dmlk_shader_watch *watch; /* NULL: nobody watches */
    uint32_t fill;            /* not 0: a byte with which groupshared memory is filled before each group */
    uint32_t backwards;       /* 1: groups run one after another, in the reverse of that order */
} dmlk_shader_call;

/* Runs all groups.  DMLK_OK; DMLK_STOPPED: by the host or by a limit; DMLK_OUT_OF_RANGE: see call->fault;
 * DMLK_OUT_OF_MEMORY. */
int dmlk_run_shader(const dmlk_shader_call *call);

/* dmlk_run_shader, which is stopped after so many seconds (0: never).  *is_late: it was. */
int dmlk_run_shader_within(const dmlk_shader_call *call, double seconds, int *is_late);

/* What a range of registers may be bound to. */
enum dmlk_shader_kind {
    DMLK_SHADER_ANY = 0, /* of ResourceDescriptorHeap */
    DMLK_SHADER_KIND_CBUFFER = 1,
    DMLK_SHADER_KIND_TYPED = 2,
    DMLK_SHADER_KIND_RAW = 3,
    DMLK_SHADER_KIND_STRUCTURED = 4
};

typedef struct dmlk_shader_want {
    uint32_t kind;       /* enum dmlk_shader_kind */
    uint32_t descriptor; /* enum dmlk_descriptor_kind */
    uint32_t stride;     /* of a structured buffer's element */
    uint32_t has_counter;
    const uint8_t *sizes; /* by DXGI_FORMAT below 256: bytes of an element of a typed view; 0: not of the shader's type */
} dmlk_shader_want;

/* Reads `count` descriptors and translates their addresses (segments are sorted by address).  What the range cannot use
 * becomes UNUSABLE.  Returns the number of usable views. */
uint64_t dmlk_shader_views(const uint8_t *descriptors, uint64_t count, const dmlk_segment *segments,
                           uint64_t segment_count, const dmlk_shader_want *want, uint32_t first_id,
                           dmlk_shader_view *views);

/* --- what the native code calls --- */

/* A function of one argument that `opcode` of dx.op names, of `lanes` numbers. */
void dmlk_shader_floats(uint32_t opcode, const float *in, float *out, uint32_t lanes);
void dmlk_shader_remainders(const float *a, const float *b, float *out, uint32_t lanes); /* fmodf */
void dmlk_shader_double_remainders(const double *a, const double *b, double *out, uint32_t lanes);

/* What LLVM calls where the CPU has no instruction for it, and not every library of C or of the compiler has: a half
 * stands in the low 16 bits of a float, since that is where such a function takes and gives it.  Denormal halves are
 * kept, as by the instructions. */
float dmlk_shader_from_half(float half);
float dmlk_shader_to_half(float x);
float dmlk_shader_round_even(float x);
double dmlk_shader_round_even_double(double x);

/* What a value of a lane is: its bits stand in a uint64_t, zero-extended. */
enum dmlk_shader_type {
    DMLK_SHADER_F16,
    DMLK_SHADER_F32,
    DMLK_SHADER_F64,
    DMLK_SHADER_I16,
    DMLK_SHADER_I32,
    DMLK_SHADER_I64,
    DMLK_SHADER_U16,
    DMLK_SHADER_U32,
    DMLK_SHADER_U64
};

/* Four components, one after the other, of `lanes` elements of typed views, as 32-bit numbers of `type`. */
void dmlk_shader_load_typed(const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask, uint32_t type,
                            uint32_t *out, uint32_t lanes);
void dmlk_shader_store_typed(const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask, uint32_t type,
                             const uint32_t *in, uint32_t lanes);

/* Atomic operations of one lane after the other; `operation`: add, and, or, xor, imin, imax, umin, umax, exchange in the
 * order of DXIL's AtomicBinOpCode, 9: subtract, 10: compare with `expected` and exchange.  NULL: out of bounds, the
 * old value is 0. */
void dmlk_shader_atomic(uint32_t operation, uint8_t *const *places, const uint64_t *values, const uint64_t *expected,
                        uint64_t *old, uint64_t mask, uint32_t bytes, uint32_t lanes);
void dmlk_shader_count(const dmlk_shader_view *const *views, int32_t step, uint64_t mask, uint32_t *out, uint32_t lanes);

/* Wave operations by the opcode of dx.op, and its kind: 0 sum, 1 product, 2 min, 3 max, or 0 and, 1 or, 2 xor. */
void dmlk_shader_wave(uint32_t opcode, uint32_t kind, uint32_t type, const uint64_t *in, const uint64_t *more,
                      uint64_t mask, uint64_t *out, uint32_t lanes);

/* Some lanes access what is outside of their views. */
void dmlk_shader_outside(const struct dmlk_shader_call *call, const uint32_t *group, uint32_t first, uint32_t line,
                         uint32_t kind, const dmlk_shader_view *const *views, const uint64_t *offsets, uint32_t bytes,
                         uint64_t mask);

/* Whether to stop; called every few thousand rounds of a loop. */
uint32_t dmlk_shader_stopped(const struct dmlk_shader_call *call);

/* cffi: end */

#endif
