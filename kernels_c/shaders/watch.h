/* watch.h - the analysis of a watched dispatch: races, footprints, barriers and lanes.
 *
 * The checked code of a shader calls one hook for each memory operation, barrier and wave operation of a wave, before
 * the operation.  The groups of a watched dispatch run one after another on one thread: everything found is the same
 * in each run, and the analysis is exact (decision 0048).  Before that, several threads may try whether there is
 * anything to find (decision 0050). */
#ifndef DMLK_WATCH_H
#define DMLK_WATCH_H

#include "shader.h"

/* cffi: begin */

#define DMLK_SHADER_READ_ONLY 64 /* flag of a view: no view of the dispatch writes its bytes */
#define DMLK_SHADER_COUNTER 4   /* kind of an access: atomic, to a view's counter; offsets are not read */

/* Flags of a barrier, as dx.op.barrier has them. */
#define DMLK_SHADER_SYNC 1         /* waits for all threads of the group */
#define DMLK_SHADER_FENCE_UAV 2    /* orders accesses to UAVs, for all groups */
#define DMLK_SHADER_FENCE_GROUP 4  /* orders accesses to UAVs, for the threads of the group */
#define DMLK_SHADER_FENCE_SHARED 8 /* orders accesses to groupshared memory */

/* A wave of a group, as the hooks see it. */
typedef struct dmlk_watched_wave {
    uint32_t group[3]; /* SV_GroupID */
    uint32_t first;    /* SV_GroupIndex of lane 0 */
    uint32_t lanes;

    /* What the code need not tell, until it tells the next access of groupshared memory, or another wave runs.
     * known: a bit for each word, whose reads by any lanes change nothing.
     * simple: a bit for each of 64 words from simple_first on: a read of one by all lanes, at line simple_line, only
     * sets its two records at cells[2 * word] to pair.
     * The code begins with no bits. */
    uint32_t simple_line, simple_first, reserved;
    const uint64_t *known;
    uint64_t simple, pair[2];
    uint64_t *cells;
} dmlk_watched_wave;

typedef enum dmlk_shader_found {
    DMLK_FOUND_RACE = 1,         /* two threads touch a byte of a buffer, one writes, nothing orders them */
    DMLK_FOUND_RACE_SAME,        /* the same, but both write the same value */
    DMLK_FOUND_SHARED_RACE,      /* the same two in groupshared memory */
    DMLK_FOUND_SHARED_RACE_SAME,
    DMLK_FOUND_OUTSIDE,          /* an access outside of its view: reads give 0, writes are dropped */
    DMLK_FOUND_ROOT_OUTSIDE,     /* an access outside of a root descriptor's resource */
    DMLK_FOUND_SHARED_OUTSIDE,   /* an access outside of groupshared memory */
    DMLK_FOUND_SHARED_UNWRITTEN, /* a read of groupshared bytes that the group has not written */
    DMLK_FOUND_WAIT_OF_SOME_LANES,    /* only some threads of a wave reach a barrier that waits for the group */
    DMLK_FOUND_WAIT_ELSEWHERE,    /* waves of a group wait at different barriers */
    DMLK_FOUND_WAIT_IN_VAIN,   /* a wave ends and others of its group wait at a barrier */
    DMLK_FOUND_LANE_INACTIVE,    /* a wave operation reads a lane that is not active */
    DMLK_FOUND_LANE_OUTSIDE,     /* a wave operation reads a lane that the wave does not have */
    DMLK_FOUND_KINDS
} dmlk_shader_found;

/* An access, barrier or wave operation of one thread. */
typedef struct dmlk_shader_side {
    uint32_t group[3];
    uint32_t thread; /* SV_GroupIndex */
    uint32_t line;   /* of the source; 0: not known */
    uint32_t kind;   /* DMLK_SHADER_READ ...; 0: no access */
    uint32_t view;   /* its id */
    uint32_t bytes;
} dmlk_shader_side;

/* The first of all findings with the same kind, lines, kinds of access and views. */
typedef struct dmlk_shader_finding {
    uint32_t kind;          /* dmlk_shader_found */
    uint32_t opcode;        /* of a wave operation */
    uint64_t offset;        /* of the first byte, in the view of `later` or in groupshared memory; or the lane read; of
                             * a barrier: a bit for each lane of `later`'s wave that waits (WAIT_IN_VAIN: 0, all do) */
    uint64_t count;         /* of the accesses that are alike; of a race: of words or smaller parts of them */
    dmlk_shader_side later;  /* the access that was found; of a barrier: a thread that waits at it */
    dmlk_shader_side earlier; /* the other one; of a barrier: a thread that does not */
} dmlk_shader_finding;

/* `count` parts of `width` bytes each, `stride` bytes apart; the first one is at byte `begin`. */
typedef struct dmlk_shader_bytes {
    uint64_t begin, width, stride, count;
} dmlk_shader_bytes;

typedef struct dmlk_shader_watch_options {
    uint32_t threads;         /* of a group: 1 to 1024 */
    uint32_t lanes;           /* of a wave: 1 to 64 */
    uint64_t shared_bytes;
    uint64_t most_findings;   /* that are kept; more are counted */
    uint64_t most_bytes;      /* of memory for the analysis of buffers; accesses beyond it are not compared */
    uint32_t in_parts;        /* 1: the groups may run on several threads; see is_doubtful */
    uint32_t reserved;
} dmlk_shader_watch_options;

/* What a watch knows at the end. */
typedef struct dmlk_shader_watch_result {
    const dmlk_shader_finding *findings;
    uint64_t count;
    uint64_t dropped;   /* findings that were not kept */
    uint64_t unchecked; /* accesses that were not compared with others: no memory left */
    uint64_t bytes;     /* of memory that the analysis takes */
    uint32_t is_doubtful; /* of a watch in parts: nothing is known; what was written is to be taken back, and the
                           * dispatch run once more with a watch that is not */
    uint32_t has_atomics; /* buffers were accessed atomically */
} dmlk_shader_watch_result;

/* NULL: a bad option, or no memory. */
dmlk_shader_watch *dmlk_shader_watch_new(const dmlk_shader_watch_options *options);
void dmlk_shader_watch_free(dmlk_shader_watch *watch);

/* After the dispatch: ends the last group.  The findings stay valid until the watch is freed. */
void dmlk_shader_watch_finish(dmlk_shader_watch *watch, dmlk_shader_watch_result *result);

/* The bytes in [address, address + bytes) that the dispatch has written (or, `written` 0: read before it wrote them),
 * as offsets from `address`, in ascending order.  Returns how many patterns there are, of which `room` are stored. */
uint64_t dmlk_shader_footprint(const dmlk_shader_watch *watch, uint64_t address, uint64_t bytes, int written,
                               dmlk_shader_bytes *patterns, uint64_t room);

/* Who was the last to write the byte at an address, or to change it atomically.  0: nobody, or it is not known. */
int dmlk_shader_last_writer(const dmlk_shader_watch *watch, uint64_t address, dmlk_shader_side *writer);

/* --- the hooks: lane i of the wave takes part if bit i of `mask` is set --- */

/* Each lane accesses `bytes` bytes at its offset of its view. */
void dmlk_shader_accessed(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                          const dmlk_shader_view *const *views, const uint64_t *offsets, uint32_t bytes,
                          uint64_t mask);
/* The same for element `indices[lane]` of a typed view, whose stride says how many bytes it has. */
void dmlk_shader_accessed_typed(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                                const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask);
/* A write, whose values are known: `bytes` bytes for each lane of the wave, one lane after another. */
void dmlk_shader_stored(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line,
                        const dmlk_shader_view *const *views, const uint64_t *offsets, const uint8_t *values,
                        uint32_t bytes, uint64_t mask);
/* The same two for groupshared memory. */
void dmlk_shader_shared(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                        const uint64_t *offsets, uint32_t bytes, uint64_t mask);
void dmlk_shader_shared_stored(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line,
                               const uint64_t *offsets, const uint8_t *values, uint32_t bytes, uint64_t mask);
/* The same where lane i accesses `offset + i * step` of one view; values: NULL, or what is written. */
void dmlk_shader_accessed_row(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                              const dmlk_shader_view *view, uint64_t offset, uint32_t step, uint32_t bytes,
                              const uint8_t *values, uint64_t mask);
/* And in groupshared memory, modulo 2^32; the lanes that are not in `inside` access what is outside. */
void dmlk_shader_shared_row(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                            uint32_t offset, uint32_t step, uint32_t bytes, const uint8_t *values, uint64_t inside,
                            uint64_t mask);
/* The flags are those of dx.op.barrier. */
void dmlk_shader_barrier(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t flags,
                         uint64_t mask);
/* A wave operation; read_lanes: NULL, or the lane that each lane reads. */
void dmlk_shader_lanes(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t opcode,
                       const uint32_t *read_lanes, uint64_t mask);

/* cffi: end */

/* --- for run.c: a watch in parts --- */

/* Makes a watch for each part.  False: no memory. */
bool dmlk_divide_watch(dmlk_shader_watch *watch, int parts);
bool dmlk_is_in_parts(const dmlk_shader_watch *watch);
/* That of the part; the watch itself if it is not divided. */
dmlk_shader_watch *dmlk_watch_of_part(dmlk_shader_watch *watch, int part);
/* Whether what a part did so far may depend on other groups, or something was found. */
bool dmlk_has_doubt(const dmlk_shader_watch *watch);
/* After the parts; has_ended: all groups of the dispatch have. */
void dmlk_join_watch(dmlk_shader_watch *watch, bool has_ended);

#endif
