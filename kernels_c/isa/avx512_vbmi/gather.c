/* As that of AVX-512, with permutations of bytes. */
#define FORM dmlk_gather_avx512_vbmi
#include "../avx512/gather.c"
