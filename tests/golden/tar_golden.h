/* Written by make_tar.py with WebDataset 1.0.2 and Python's tarfile. Deflated (zlib). */
/* clang-format off */
#ifndef TESTS_GOLDEN_TAR_GOLDEN_H
#define TESTS_GOLDEN_TAR_GOLDEN_H

#include <stdint.h>

enum { golden_gnu_bytes = 20480 };
static const uint8_t golden_gnu[436] = {
    120, 218, 237, 155, 75, 110, 131, 48, 20, 69, 89, 10, 27, 168, 191, 128, 167, 157, 117, 130,
    170, 238, 192, 114, 83, 7, 145, 143, 65, 193, 145, 210, 221, 23, 101, 80, 169, 144, 170, 74,
    35, 219, 74, 184, 103, 2, 99, 158, 142, 175, 223, 195, 54, 52, 11, 14, 27, 169, 138, 226,
    252, 28, 153, 62, 47, 188, 87, 92, 136, 44, 47, 179, 8, 28, 7, 111, 14, 121, 158, 45,
    20, 67, 199, 47, 206, 201, 166, 111, 82, 214, 191, 156, 212, 95, 9, 54, 214, 159, 161, 254,
    193, 89, 183, 135, 193, 103, 96, 225, 254, 175, 118, 67, 74, 255, 249, 212, 127, 174, 20, 252,
    143, 129, 130, 2, 240, 159, 19, 127, 242, 9, 253, 231, 51, 255, 133, 172, 224, 127, 148, 250,
    231, 43, 211, 251, 182, 115, 80, 97, 185, 254, 139, 212, 249, 47, 230, 251, 127, 14, 255, 99,
    240, 36, 225, 0, 252, 79, 218, 255, 115, 46, 217, 220, 127, 9, 255, 99, 112, 2, 32, 0,
    88, 89, 239, 3, 173, 183, 246, 83, 107, 178, 183, 222, 104, 157, 170, 255, 155, 172, 255, 156,
    21, 2, 253, 95, 20, 118, 118, 237, 243, 238, 136, 17, 240, 66, 113, 157, 182, 39, 111, 221,
    16, 112, 4, 240, 15, 255, 165, 192, 252, 23, 254, 131, 224, 16, 74, 232, 115, 221, 185, 166,
    110, 221, 54, 160, 255, 23, 188, 255, 118, 94, 40, 53, 237, 255, 84, 53, 246, 127, 53, 252,
    15, 206, 199, 13, 80, 123, 3, 116, 125, 3, 100, 176, 13, 233, 93, 3, 127, 239, 161, 254,
    127, 207, 127, 139, 159, 254, 75, 46, 49, 255, 137, 195, 222, 12, 91, 88, 128, 252, 79, 155,
    255, 114, 150, 255, 165, 66, 254, 35, 255, 127, 205, 255, 183, 215, 23, 184, 251, 56, 249, 95,
    206, 243, 191, 64, 254, 199, 160, 221, 155, 198, 66, 3, 228, 63, 242, 31, 235, 255, 253, 228,
    127, 208, 243, 74, 168, 127, 236, 252, 23, 243, 252, 199, 249, 175, 40, 112, 1, 7, 150, 204,
    206, 12, 158, 116, 206, 210, 119, 178, 233, 109, 152, 129, 234, 213, 247, 255, 56, 43, 25, 254,
    255, 199, 174, 127, 176, 76, 189, 250, 254, 15, 103, 178, 192, 252, 55, 10, 44, 3, 75, 230,
    124, 254, 87, 166, 190, 255, 59, 91, 255, 69, 53, 238, 255, 68, 248, 171, 201, 139, 247, 31,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 143, 207, 23, 115, 196, 124, 185,
};
enum { golden_pax_bytes = 20480 };
static const uint8_t golden_pax[453] = {
    120, 218, 237, 155, 221, 106, 131, 48, 24, 134, 61, 222, 85, 244, 6, 22, 243, 227, 15, 59,
    24, 236, 108, 59, 26, 189, 3, 201, 218, 212, 181, 181, 42, 77, 10, 238, 238, 23, 58, 24,
    204, 20, 70, 87, 146, 224, 124, 159, 19, 61, 19, 253, 120, 124, 205, 231, 23, 153, 38, 222,
    161, 150, 34, 203, 206, 71, 203, 248, 120, 225, 188, 96, 5, 79, 22, 121, 18, 128, 147, 54,
    242, 104, 47, 153, 204, 19, 153, 218, 39, 206, 200, 174, 175, 99, 214, 63, 31, 213, 191, 228,
    153, 173, 63, 69, 253, 189, 179, 217, 30, 181, 73, 64, 50, 111, 255, 87, 141, 142, 233, 63,
    115, 252, 23, 37, 252, 15, 65, 9, 5, 224, 63, 35, 102, 48, 17, 253, 103, 174, 255, 101,
    1, 255, 131, 212, 127, 177, 146, 189, 217, 118, 45, 84, 152, 175, 255, 60, 118, 254, 115, 247,
    251, 159, 193, 255, 16, 220, 11, 56, 0, 255, 163, 174, 255, 25, 19, 212, 245, 95, 192, 255,
    16, 12, 0, 120, 0, 111, 214, 105, 80, 85, 123, 245, 81, 85, 228, 160, 140, 172, 170, 88,
    235, 191, 209, 251, 159, 209, 172, 192, 250, 47, 8, 141, 218, 152, 69, 119, 66, 11, 120, 166,
    180, 93, 165, 6, 163, 90, 237, 177, 5, 240, 7, 255, 69, 129, 254, 47, 252, 7, 222, 33,
    41, 73, 159, 150, 114, 120, 81, 114, 173, 142, 254, 252, 191, 224, 253, 183, 243, 194, 245, 159,
    83, 235, 255, 0, 255, 189, 195, 41, 93, 244, 210, 188, 63, 174, 111, 32, 85, 55, 144, 110,
    110, 128, 104, 85, 147, 190, 173, 239, 96, 242, 223, 8, 81, 246, 223, 251, 191, 217, 79, 255,
    5, 19, 232, 255, 132, 225, 32, 245, 30, 22, 32, 255, 163, 230, 255, 216, 127, 155, 255, 140,
    35, 255, 67, 192, 30, 138, 73, 231, 255, 242, 245, 25, 217, 63, 249, 252, 207, 221, 252, 207,
    144, 255, 33, 216, 30, 100, 173, 160, 1, 242, 31, 249, 143, 252, 159, 96, 254, 175, 26, 141,
    252, 159, 124, 254, 115, 55, 255, 49, 255, 21, 198, 127, 14, 7, 230, 76, 35, 181, 33, 93,
    171, 210, 55, 178, 235, 149, 159, 33, 176, 171, 247, 255, 49, 154, 103, 248, 255, 31, 186, 254,
    222, 102, 128, 175, 222, 255, 195, 104, 70, 209, 255, 13, 194, 92, 239, 27, 124, 113, 158, 255,
    21, 177, 247, 255, 186, 243, 31, 220, 126, 255, 113, 255, 91, 147, 103, 239, 63, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 254, 63, 159, 196, 143, 136, 63,
};
enum { golden_web_bytes = 20480 };
static const uint8_t golden_web[316] = {
    120, 218, 237, 218, 205, 74, 195, 64, 20, 64, 225, 209, 165, 79, 145, 39, 72, 239, 252, 167,
    11, 193, 165, 75, 95, 97, 180, 161, 84, 44, 72, 19, 161, 143, 111, 130, 139, 34, 105, 112,
    213, 105, 234, 156, 111, 147, 208, 4, 178, 233, 229, 228, 66, 234, 85, 189, 122, 122, 73, 199,
    231, 54, 109, 218, 131, 186, 8, 249, 49, 119, 20, 177, 246, 116, 62, 254, 174, 197, 104, 173,
    170, 163, 202, 224, 171, 235, 211, 97, 120, 188, 42, 147, 137, 213, 190, 223, 237, 219, 71, 29,
    215, 222, 120, 19, 156, 174, 77, 208, 54, 186, 7, 133, 255, 175, 147, 250, 237, 163, 187, 236,
    51, 198, 161, 118, 206, 205, 207, 191, 104, 165, 189, 21, 49, 65, 134, 255, 223, 48, 255, 58,
    56, 171, 42, 201, 57, 255, 175, 187, 237, 38, 245, 105, 246, 190, 191, 174, 223, 40, 97, 4,
    138, 86, 211, 127, 250, 63, 237, 191, 139, 107, 250, 95, 72, 255, 223, 63, 183, 215, 238, 191,
    159, 246, 63, 208, 127, 160, 140, 254, 187, 105, 255, 13, 253, 207, 210, 255, 230, 108, 255, 125,
    108, 2, 47, 0, 37, 244, 95, 47, 116, 255, 119, 244, 63, 7, 205, 8, 208, 255, 171, 247,
    223, 76, 251, 47, 244, 63, 75, 255, 195, 217, 254, 135, 72, 253, 75, 233, 255, 50, 247, 255,
    72, 255, 115, 184, 27, 49, 6, 244, 159, 253, 159, 253, 255, 212, 255, 24, 2, 31, 0, 20,
    209, 127, 179, 208, 253, 223, 211, 255, 28, 28, 35, 64, 255, 233, 63, 253, 255, 221, 255, 198,
    54, 134, 254, 151, 209, 255, 69, 238, 255, 94, 232, 127, 14, 247, 35, 198, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 224, 102, 125, 3, 240, 72, 3, 244,
};
enum { golden_ustar_bytes = 20480 };
static const uint8_t golden_ustar[388] = {
    120, 218, 237, 219, 77, 114, 194, 32, 28, 135, 225, 28, 197, 11, 20, 249, 3, 33, 71, 232,
    174, 211, 27, 48, 212, 98, 198, 175, 36, 35, 56, 99, 111, 223, 212, 174, 154, 116, 81, 181,
    192, 180, 252, 158, 77, 220, 57, 202, 188, 137, 124, 104, 151, 85, 116, 124, 164, 149, 186, 92,
    71, 211, 235, 55, 175, 53, 105, 81, 45, 234, 42, 129, 147, 15, 246, 56, 190, 101, 85, 38,
    187, 28, 191, 113, 98, 219, 161, 205, 57, 254, 245, 100, 252, 27, 161, 198, 241, 231, 24, 255,
    232, 214, 155, 163, 15, 21, 84, 101, 247, 191, 218, 251, 156, 253, 211, 172, 127, 217, 160, 255,
    20, 26, 36, 128, 254, 137, 133, 115, 200, 216, 63, 205, 251, 111, 52, 250, 79, 50, 254, 139,
    149, 29, 194, 166, 239, 144, 66, 185, 253, 139, 220, 207, 127, 49, 255, 253, 79, 232, 63, 133,
    7, 137, 6, 208, 127, 214, 249, 63, 145, 228, 243, 254, 37, 250, 79, 225, 12, 16, 1, 238,
    172, 127, 131, 49, 59, 247, 102, 12, 59, 184, 96, 141, 201, 53, 255, 155, 220, 255, 137, 43,
    141, 249, 95, 18, 123, 183, 14, 139, 254, 132, 37, 224, 66, 117, 189, 113, 231, 224, 58, 31,
    113, 9, 224, 134, 254, 165, 198, 250, 47, 250, 135, 232, 220, 29, 152, 119, 45, 27, 186, 246,
    238, 254, 185, 250, 218, 255, 88, 191, 172, 255, 120, 255, 175, 119, 72, 56, 254, 7, 235, 119,
    168, 0, 253, 223, 212, 255, 243, 211, 227, 175, 60, 255, 167, 231, 63, 164, 230, 130, 208, 127,
    10, 155, 131, 109, 29, 50, 64, 255, 183, 244, 255, 195, 93, 163, 171, 247, 127, 164, 166, 90,
    162, 255, 20, 72, 160, 129, 146, 237, 173, 15, 172, 239, 220, 242, 133, 109, 7, 23, 103, 19,
    232, 234, 243, 191, 196, 107, 133, 245, 191, 212, 227, 31, 237, 12, 192, 213, 231, 255, 136, 43,
    142, 253, 191, 36, 74, 253, 220, 240, 233, 178, 255, 47, 115, 159, 255, 159, 175, 255, 126, 204,
    255, 68, 252, 191, 38, 20, 223, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 252, 31, 239, 204, 199, 143, 230,
};

/* What WebDataset reads: the sample's key, and the file of each extension, NULL where there is none. */
typedef struct golden_sample {
    const char *key, *jpg, *jpeg, *png, *cls;
} golden_sample;
static const golden_sample golden_gnu_samples[] = {
    {"a/0001", "first", NULL, NULL, "7"},
    {"a/0002", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL, NULL, "-3"},
    {"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee/ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", NULL, NULL, "image", "12"},
    {"last.one/b", NULL, "", NULL, "0"},
};
static const golden_sample golden_pax_samples[] = {
    {"a/0001", "first", NULL, NULL, "7"},
    {"a/0002", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL, NULL, "-3"},
    {"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee/ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", NULL, NULL, "image", "12"},
    {"last.one/b", NULL, "", NULL, "0"},
};
static const golden_sample golden_web_samples[] = {
    {"s0", "", NULL, NULL, "0"},
    {"s1", "\1\1\1\1\1", NULL, NULL, "1"},
    {"s2", "\2\2\2\2\2", NULL, NULL, "4"},
};
static const golden_sample golden_ustar_samples[] = {
    {"a/0001", "first", NULL, NULL, "7"},
    {"a/0002", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL, NULL, "-3"},
    {"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", NULL, NULL, "image", "12"},
    {"last.one/b", NULL, "", NULL, "0"},
};

#endif
