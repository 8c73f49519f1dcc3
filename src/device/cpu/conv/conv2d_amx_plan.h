/* How a convolution becomes products of tiles (conv2d_amx.c): its image laid out in lines.
 *
 * Along one line of pixels, with zeros between the rows and images that padding asks for, a tap reads at a fixed
 * distance from where it writes. So 16 neighbours of a line times the weights of a tap are a product, whatever row they
 * belong to, and all taps and channels add up in the same tiles. What lands on the zeros between rows is thrown away.
 *
 *   in phase   with a stride of 2 a tap reads every second pixel: even and odd rows and columns have their own lines
 *   out phase  of a gradient of data the other way round: even and odd pixels of the result are sums over other taps
 *   unit       what is laid out at a time and stays in the second-level cache: some images, or some rows of one
 *
 * Where zeros between rows would be a large part, as with small images, and images come in 16s, a place of a line has
 * that pixel of 16 images: a tile is a pixel, and nothing is computed that is thrown away.
 *
 * Few channels (an image's three) would leave most of a tile empty. There the taps of a row are taken together: a place
 * of a line has all numbers that a row of the kernel reads there, and only taps of different rows are told apart.
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_AMX_PLAN_H
#define STK_DEVICE_CPU_CONV_CONV2D_AMX_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/onednn/onednn.h"

enum { STK_CONV_AMX_STRIDE = 2, STK_CONV_AMX_PHASES = STK_CONV_AMX_STRIDE * STK_CONV_AMX_STRIDE };

/* Rows or columns. */
typedef struct stk_conv_amx_axis {
    int64_t in, out;         /* pixels */
    int stride, n_in, n_out; /* phases */
    int64_t kernel, pad, dilation;
    bool is_data;
    int64_t lead, tail; /* how far taps reach before the first place of a line, and behind it */
    int64_t places;     /* most of an out phase */
    int64_t pitch;      /* from row to row of a line, or image to image */
} stk_conv_amx_axis;

/* Tap number `tap` of an out phase reads in phase *in, *shift places on; false: nothing. */
bool stk_conv_amx_tap(const stk_conv_amx_axis *axis, int out_phase, int64_t tap, int *in, int64_t *shift);
/* Places of an in phase, or an out phase, that exist. */
int64_t stk_conv_amx_count(int64_t pixels, int phase, int n_phases);

typedef struct stk_conv_amx_plan {
    stk_conv_amx_axis y, x;
    int64_t n_images, n_channels, n_out_channels; /* as this pass reads and writes them */
    bool joins_row;                               /* a place has the numbers of a row of the kernel */
    int64_t place_values;                         /* of a place: n_channels, or a row's */
    int64_t n_chunks;                             /* of 32 of them */
    int64_t n_panels;                             /* of 32 out channels */
    int64_t taps_y, taps_x;                       /* those that the packed weights tell apart */
    int64_t together;                             /* images that share places, a group: 1, or 16 */
    int64_t place;                                /* elements of a place */
    /* A unit: unit_groups groups of images, or unit_rows rows of one, of which each has n_bands units. */
    int64_t n_groups, unit_groups, unit_rows, n_bands, n_units;
    int64_t front, phase_places;   /* of a phase's line: places before the first one, and all */
    int slot[STK_CONV_AMX_PHASES]; /* where the line of an in phase is; -1: nothing reads it */
    int n_slots;
    int64_t n_steps[STK_CONV_AMX_PHASES]; /* of an out phase */
    int64_t first[STK_CONV_AMX_PHASES];   /* where its weights begin in a panel, in steps */
    int64_t *steps[STK_CONV_AMX_PHASES];  /* [n_steps]: where each reads, in elements from the unit's memory on */
    int32_t *rows[STK_CONV_AMX_PHASES];   /* for each row of a unit's tiles: the pixel of the unit's result, or -1 */
    int64_t *tiles[STK_CONV_AMX_PHASES];  /* where images are together: each place that is computed, in elements */
    int64_t most_rows;                    /* of tiles, of an out phase of a unit */
    size_t unit_bytes, weight_bytes;
} stk_conv_amx_plan;

/* Rows of tiles that an out phase has of a unit of n_groups groups of images, or of its rows of pixels from first_row
 * on. */
int64_t stk_conv_amx_rows(const stk_conv_amx_plan *plan, int phase, int64_t n_groups, int64_t first_row);

/* Of forward and gradients of data, in one group. Threads: how many share the work. STK_UNSUPPORTED where it has
 * strides above 2. Returned: free with stk_conv_amx_plan_free, in either case. */
stk_status stk_conv_amx_plan_make(const stk_conv_shape *shape, int n_threads, stk_conv_amx_plan *plan);
void stk_conv_amx_plan_free(stk_conv_amx_plan *plan);

#endif
