/* Convolutions of images and volumes: pixels and taps. An image is a volume of depth 1. Setting: FIRST_AXIS, 0, or 1
 * where all are images. */
typedef struct NAME(volumes) {
    divisor y_size[3], x_size[3], taps[3], stride[3]; /* depth, height, width */
    divisor x_channels, y_channels;                   /* of one group */
    int pad[3], dilation[3];
    int n_images, n_taps, all_x_channels, all_y_channels;
} NAME(volumes);

typedef struct NAME(volume_place) {
    int at[3], image; /* image: or what lies beyond all taps */
} NAME(volume_place);

FUNCTION NAME(volume_place) NAME(find_pixel)(int i, const divisor *size)
{
    NAME(volume_place) out;
    UNROLL
    for (int axis = 2; axis >= FIRST_AXIS; axis--) {
        const int rest = divide(i, size[axis]);
        out.at[axis] = i - rest * size[axis].d;
        i = rest;
    }
    out.image = i;
    return out;
}

/* The pixel of x under a tap for a pixel of y; -1: it is outside, or one of the two is none. */
FUNCTION index_t NAME(find_under)(NAME(volumes) v, int pixel, int i_tap)
{
    const NAME(volume_place) y = NAME(find_pixel)(pixel, v.y_size), tap = NAME(find_pixel)(i_tap, v.taps);
    index_t at = y.image;
    if (y.image >= v.n_images || tap.image > 0) return -1;
    UNROLL
    for (int axis = FIRST_AXIS; axis < 3; axis++) {
        const int x = y.at[axis] * v.stride[axis].d - v.pad[axis] + tap.at[axis] * v.dilation[axis];
        if (x < 0 || x >= v.x_size[axis].d) return -1;
        at = at * v.x_size[axis].d + x;
    }
    return at;
}

/* The pixel of y that has a pixel of x under a tap; -1: there is none. */
FUNCTION index_t NAME(find_above)(NAME(volumes) v, int pixel, int i_tap)
{
    const NAME(volume_place) x = NAME(find_pixel)(pixel, v.x_size), tap = NAME(find_pixel)(i_tap, v.taps);
    index_t at = x.image;
    if (x.image >= v.n_images || tap.image > 0) return -1;
    UNROLL
    for (int axis = FIRST_AXIS; axis < 3; axis++) {
        const int whole = x.at[axis] + v.pad[axis] - tap.at[axis] * v.dilation[axis];
        if (whole < 0) return -1;
        const int y = divide(whole, v.stride[axis]);
        if (y * v.stride[axis].d != whole || y >= v.y_size[axis].d) return -1;
        at = at * v.y_size[axis].d + y;
    }
    return at;
}
