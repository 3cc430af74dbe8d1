/* shader.h - compute shaders: what their native code gets, and how a dispatch of one runs.
 *
 * The native code of a shader runs one group of threads; dmlk_run_shader runs all groups of a dispatch, on the threads
 * of the pool. */
#ifndef DMLK_SHADER_H
#define DMLK_SHADER_H

#include "dmlk.h"

/* cffi: begin */

#define DMLK_SHADER_ROOT 1 /* dmlk_shader_view.flags: a root descriptor, which D3D12 does not bound: an access outside
                            * stops the dispatch */
#define DMLK_SHADER_UNUSABLE 2 /* the descriptor is not what the shader declares: base is NULL */
#define DMLK_SHADER_CBV 4 /* what the descriptor is: all views have one of these, unless they are UNUSABLE */
#define DMLK_SHADER_SRV 8
#define DMLK_SHADER_UAV 16
#define DMLK_SHADER_RAW 32

/* A view as a shader sees it; all sizes in bytes. */
typedef struct dmlk_shader_view {
    uint8_t *base;    /* NULL: a null descriptor: reads give 0, writes are dropped */
    uint64_t bytes;   /* of the view; of a root descriptor: from its address to the end of the resource */
    uint8_t *counter; /* of a structured UAV; NULL: none */
    uint32_t stride;  /* of a structured view's element, or of a typed view's; else 0 */
    uint32_t format;  /* DXGI_FORMAT of a typed view; else 0 */
    uint32_t flags;   /* DMLK_SHADER_* */
    uint32_t id;      /* the caller's number for it, for what is reported */
} dmlk_shader_view;

/* The views of a range of registers; the index is the register minus the first one of the range. */
typedef struct dmlk_shader_range {
    const dmlk_shader_view *views;
    uint64_t count;
} dmlk_shader_range;

/* Why a dispatch was stopped. */
typedef struct dmlk_shader_fault {
    uint32_t kind; /* 0: none; 1: outside of a root descriptor's resource */
    uint32_t view; /* its id */
    uint64_t offset; /* in bytes, from the start of the view */
    uint32_t bytes;
    uint32_t access; /* enum dmlk_access */
    uint32_t group[3];
    uint32_t thread; /* SV_GroupIndex */
    uint32_t line; /* of the source; 0: not known */
    uint32_t reserved;
} dmlk_shader_fault;

struct dmlk_shader_watch;
struct dmlk_shader_call;

/* Runs the group (x, y, z).  `shared` and `frames`: memory for groupshared variables and for values of threads across
 * barriers. */
typedef void dmlk_shader_group(const struct dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                               uint8_t *frames);

typedef struct dmlk_shader_call {
    dmlk_shader_group *run;          /* the native code of one group */
    const dmlk_shader_range *ranges; /* in the order of CompiledShader.ranges */
    const dmlk_shader_range *heap;   /* descriptors as ResourceDescriptorHeap sees them; NULL: not used */
    uint32_t groups[3];
    uint32_t reserved;
    uint64_t shared_bytes, frame_bytes;
    uint64_t order; /* 0: groups run in their order; else chaos draws an order from it */
    dmlk_shader_fault *fault;
    struct dmlk_shader_watch *watch; /* NULL: not watched */
} dmlk_shader_call;

/* DMLK_OK; DMLK_STOPPED: by the host or by a limit; DMLK_OUT_OF_RANGE: see call->fault; DMLK_OUT_OF_MEMORY. */
int dmlk_run_shader(const dmlk_shader_call *call);

/* dmlk_run_shader, which is stopped after so many seconds (0: never).  *is_late: it was. */
int dmlk_run_shader_within(const dmlk_shader_call *call, double seconds, int *is_late);

/* Called by native code in loops: adds to the thread's count of work, and now and then looks whether the dispatch was
 * stopped.  Not 0: return, the results are discarded. */
int dmlk_shader_stopped(int64_t *work, int64_t amount);

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

/* cffi: end */

#endif
