/* As that of VNNI, with permutations of bytes. */
#define FORM dmlk_depthwise_avx512_vbmi
#include "../avx512_vnni/depthwise.c"
