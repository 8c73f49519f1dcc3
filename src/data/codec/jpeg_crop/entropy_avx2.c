/* The same loops with shifts that take their count in any register (BMI2). */
#ifdef __x86_64__
#define NAME(x) x##_avx2
#include "data/codec/jpeg_crop/entropy.h"
#endif
