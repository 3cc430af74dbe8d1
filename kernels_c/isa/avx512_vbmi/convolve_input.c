/* As that of AVX-512, with permutations of bytes. */
#define FORM dmlk_convolve_input_avx512_vbmi
#include "../avx512/convolve_input.c"
