#define NAME(x) x##_plain
#include "data/codec/jpeg_crop/entropy.h"
