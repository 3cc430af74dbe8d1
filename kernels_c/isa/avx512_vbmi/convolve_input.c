/* The form for AVX-512, compiled with permutations of bytes (see permute_bytes.h). */
#define FORM dmlk_convolve_input_avx512_vbmi
#include "../avx512/convolve_input.c"
