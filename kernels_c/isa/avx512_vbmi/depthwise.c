/* The form for AVX-512 VNNI, compiled with permutations of bytes (see permute_bytes.h). */
#define FORM dmlk_depthwise_avx512_vbmi
#include "../avx512_vnni/depthwise.c"
