/* Lines of the program's Python; see python_lines.h and docs/decisions/0037.
 *
 * The frames of the calling thread are read where Python has them: its lock is not needed, as this thread alone could
 * change them and it is here, and the lock may belong to a thread that waits for this one.  Nothing is kept, no
 * reference is taken, and no function of Python is called that does more than read. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "python_lines.h"

/* --- where a version of Python has what --- */

#define NONE UINT32_MAX

/* Offsets in bytes. */
struct layout {
    int minor;                                /* of Python 3 */
    uint32_t code_size, frame_size;           /* what the types say: other builds have others */
    uint32_t frame_of_thread, frame_of_that;  /* the latter: in what the former points to; NONE: that is the frame */
    uint32_t frame_bytes;                     /* of the fields here */
    uint32_t outer, code, instruction, owner; /* of a frame */
    uint32_t file, function, instructions;    /* of a code object; no instructions: a frame has an index of them */
    uint32_t unit;                            /* bytes that the index counts */
    uint32_t ascii, other;                    /* of a text: its characters, by their kind */
};

static const struct layout layouts[] = {
    {9, 176, 368, 24, NONE, 108, 24, 32, 104, NONE, 104, 112, NONE, 1, 48, 72},
    {10, 176, 360, 24, NONE, 100, 24, 32, 96, NONE, 104, 112, NONE, 2, 48, 72},
    {11, 184, 120, 56, 8, 72, 48, 32, 56, NONE, 112, 128, 184, 1, 48, 72},
    {12, 192, 120, 56, 0, 72, 8, 0, 56, 70, 112, 128, 192, 1, 40, 56},
    {13, 200, 136, 72, NONE, 72, 8, 0, 56, 70, 112, 128, 200, 1, 40, 56},
};

enum { OBJECT_SIZE = 16, TYPE_OF_OBJECT = 8, SIZE_OF_TYPE = 32, LENGTH_OF_TEXT = 16, STATE_OF_TEXT = 32 };
enum { MOST_BYTES = 112, MOST_FRAMES = 1000 };
enum { OF_C = 3 }; /* the owner of a frame without code */

static struct {
    const struct layout *layout; /* NULL: there are no lines */
    uintptr_t code_type;
    void *(*thread)(void);         /* the state of this thread, if it has one */
    void *(*running_thread)(void); /* of the thread that has the lock; since 3.12 only if that is this one */
    int (*is_finalizing)(void);
    int (*line_of)(uintptr_t code, int instruction);
} python;

static uint32_t size_of_type(void *library, const char *name)
{
    const char *type = dlsym(library, name);
    int64_t size = 0;
    if (type != NULL)
        memcpy(&size, type + SIZE_OF_TYPE, sizeof size);
    return (uint32_t)size;
}

static const struct layout *find_layout(void *library, const char *version)
{
    const int minor = strncmp(version, "3.", 2) == 0 ? atoi(version + 2) : 0;
    for (const struct layout *each = layouts; each < layouts + sizeof layouts / sizeof *layouts; each++)
        if (each->minor == minor && size_of_type(library, "PyBaseObject_Type") == OBJECT_SIZE &&
            size_of_type(library, "PyCode_Type") == each->code_size &&
            size_of_type(library, "PyFrame_Type") == each->frame_size)
            return each;
    return NULL;
}

/* --- frames --- */

struct frame {
    uintptr_t code;
    uint64_t instruction; /* its address, or its index */
};

/* Whether nobody can take the frames of this thread away.  Python frees those of other threads when it ends, which it
 * does with its lock and on the main thread. */
static int is_protected(const void *thread)
{
    return python.running_thread() == thread || syscall(SYS_gettid) == getpid();
}

/* Reads memory that may be gone, unless it is protected. */
static int read_memory(uintptr_t from, void *into, size_t size, int protected)
{
    if (protected) {
        memcpy(into, (const void *)from, size);
        return 1;
    }
    const struct iovec here = {into, size}, there = {(void *)from, size};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

static uint64_t word_at(const char *bytes, uint32_t offset, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, bytes + offset, size);
    return word;
}

/* The innermost frame of a thread; 0: there is none. */
static uintptr_t find_innermost(uintptr_t thread, int protected)
{
    const struct layout *at = python.layout;
    uintptr_t frame = 0;
    if (!read_memory(thread + at->frame_of_thread, &frame, sizeof frame, protected) ||
        (at->frame_of_that != NONE && !read_memory(frame + at->frame_of_that, &frame, sizeof frame, protected)))
        return 0;
    return frame;
}

/* Reads a frame; returns the one that called it.  0: there is no more, or it cannot be read. */
static uintptr_t read_frame(uintptr_t address, struct frame *frame, int protected)
{
    const struct layout *at = python.layout;
    char bytes[MOST_BYTES];
    *frame = (struct frame){0};
    if (!read_memory(address, bytes, at->frame_bytes, protected))
        return 0;
    if (!protected && python.is_finalizing()) /* then what was read may be nothing; before, its code stays */
        return 0;
    if (at->owner == NONE || bytes[at->owner] != OF_C) {
        frame->code = word_at(bytes, at->code, 8);
        frame->instruction = word_at(bytes, at->instruction, at->instructions == NONE ? 4 : 8);
    }
    return word_at(bytes, at->outer, 8);
}

/* --- lines --- */

static void find_text(uintptr_t code, uint32_t field, struct dmlemu_text *text)
{
    const struct layout *at = python.layout;
    const char *object = (const char *)word_at((const char *)code, field, 8);
    const uint64_t state = word_at(object, STATE_OF_TEXT, 4);
    text->width = state >> 5 & 1 ? (uint32_t)state >> 2 & 7 : 0; /* of a subclass: elsewhere, so it is empty */
    text->size = (uint32_t)word_at(object, LENGTH_OF_TEXT, 8) * text->width;
    text->at = (uintptr_t)object + (state >> 6 & 1 ? at->ascii : at->other);
}

static uint32_t character(const struct dmlemu_text *text, uint32_t offset)
{
    const char *at = (const char *)text->at + offset;
    return text->width == 1   ? *(const uint8_t *)at
           : text->width == 2 ? *(const uint16_t *)(const void *)at
                              : *(const uint32_t *)(const void *)at;
}

static int has_at(const struct dmlemu_text *text, uint32_t offset, const char *word)
{
    for (; *word && offset < text->size; offset += text->width, word++)
        if (character(text, offset) != (uint32_t)*word)
            return 0;
    return !*word;
}

/* Whether a file belongs to Python or to a package, not to the program. */
static int is_installed(const struct dmlemu_text *file)
{
    if (has_at(file, 0, "<frozen "))
        return 1;
    for (uint32_t i = 0; i < file->size; i += file->width)
        if (character(file, i) == '/' && (has_at(file, i, "/site-packages/") || has_at(file, i, "/dist-packages/") ||
                                          has_at(file, i, "/lib/python3.")))
            return 1;
    return 0;
}

static uint64_t add_text(uint64_t hash, const struct dmlemu_text *text)
{
    for (uint32_t i = 0; i < text->size; i += 8) {
        const uint32_t left = text->size - i;
        hash = (hash ^ word_at((const char *)text->at, i, left < 8 ? left : 8)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

static int has_code(const struct frame *frame)
{
    return frame->code != 0 && word_at((const char *)frame->code, TYPE_OF_OBJECT, 8) == python.code_type;
}

/* The line of a frame that has code, and whose file was found. */
static void complete_line(const struct frame *frame, struct dmlemu_line *line)
{
    const struct layout *at = python.layout;
    const uint64_t instruction = at->instructions == NONE
                                     ? frame->instruction * at->unit
                                     : frame->instruction - (frame->code + at->instructions);
    line->number = python.line_of(frame->code, (int)instruction);
    find_text(frame->code, at->function, &line->function);
    line->hash = add_text(add_text(0, &line->file), &line->function);
}

/* The innermost line of the program and those that called it; the innermost one of all, if none is the program's. */
static int find_lines(struct dmlemu_line *lines)
{
    void *thread = python.thread();
    const int protected = thread != NULL && is_protected(thread);
    uintptr_t next = thread != NULL ? find_innermost((uintptr_t)thread, protected) : 0;
    struct dmlemu_line line, innermost;
    struct frame frame;
    int count = 0, has_any = 0;
    for (int i = 0; i < MOST_FRAMES && next != 0 && count < DMLEMU_LINES; i++) {
        next = read_frame(next, &frame, protected);
        if (!has_code(&frame))
            continue;
        find_text(frame.code, python.layout->file, &line.file);
        const int is_own = !is_installed(&line.file);
        if (!is_own && count != 0)
            break;
        if (is_own || !has_any)
            complete_line(&frame, &line);
        if (is_own)
            lines[count++] = line;
        else if (!has_any)
            innermost = line;
        has_any = 1;
    }
    if (count == 0 && has_any)
        lines[count++] = innermost;
    return count;
}

static void *find(void *library, const char *name, const char *former)
{
    void *found = dlsym(library, name);
    return found != NULL ? found : dlsym(library, former);
}

void dmlemu_prepare_lines(void *library, struct dmlemu_exports *exports)
{
    const char *(*version)(void);
    *(void **)&version = dlsym(library, "Py_GetVersion");
    *(void **)&python.thread = dlsym(library, "PyGILState_GetThisThreadState");
    *(void **)&python.running_thread = find(library, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
    *(void **)&python.is_finalizing = find(library, "Py_IsFinalizing", "_Py_IsFinalizing");
    *(void **)&python.line_of = dlsym(library, "PyCode_Addr2Line");
    python.code_type = (uintptr_t)dlsym(library, "PyCode_Type");
    if (version == NULL)
        return;
    if (python.thread && python.running_thread && python.is_finalizing && python.line_of)
        python.layout = find_layout(library, version());
    if (python.layout != NULL)
        exports->find_lines = find_lines;
    else
        exports->unknown_python = version();
}
