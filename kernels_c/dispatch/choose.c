/* choose.c - chooses a form for each kernel that has files in isa/, once, when the library is loaded: of the forms
 * whose features this CPU has, the one with the highest score (see cpu.h).
 *
 * A file isa/<set>/<stem>.c defines dmlk_<stem>_<set>, a struct dmlk_<stem>_form; the kernel that uses them defines
 * the pointer dmlk_<stem>_form, which stays NULL where this CPU supports no form.  CMakeLists.txt makes isa_list.inc
 * from the file names. */
#include "cpu.h"

#include <stddef.h>

#define DMLK_STEM(stem) extern const struct dmlk_##stem##_form *dmlk_##stem##_form;
#define DMLK_FORM(stem, set) extern const struct dmlk_##stem##_form dmlk_##stem##_##set;
#include "isa_list.inc"
#undef DMLK_STEM
#undef DMLK_FORM

/* The score of a set of features; -1: this CPU does not have them all. */
static int64_t score(uint32_t needs) { return dmlk_has(needs) ? (int64_t)needs : -1; }

__attribute__((constructor(102))) static void choose(void) {
    int64_t best = -1;
#define DMLK_STEM(stem) best = -1;
#define DMLK_FORM(stem, set)                      \
    if (score(DMLK_SET_##set) > best) {           \
        best = score(DMLK_SET_##set);             \
        dmlk_##stem##_form = &dmlk_##stem##_##set; \
    }
#include "isa_list.inc"
}
