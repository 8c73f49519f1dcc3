/* Keys of the stages. */
#include "recipe/keys.h"

static const char *const normalize_words[] = {"mnist", "cifar10", "imagenet", NULL};
static const char *const dtype_words[] = {"f32", "u8", NULL};
static const char *const filter_words[] = {"bilinear", "bicubic", "nearest", NULL};
static const char *const resize_like_words[] = {"pil", "tf", "opencv", NULL};
static const stk_key channel_number = {.name = "number", .type = STK_KEY_REAL};

static const stk_key decode_keys[] = {{.name = "channels",
                                       .type = STK_KEY_INT,
                                       .default_value = "3",
                                       .least = 1,
                                       .most = 3,
                                       .doc = "1 for grey, 3 for RGB."},
                                      {.name = "exif",
                                       .type = STK_KEY_BOOL,
                                       .default_value = "false",
                                       .doc = "Whether a JPEG is turned upright as its EXIF orientation says."},
                                      END};
static const stk_key resize_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .doc = "Both sides, in pixels."},
    {.name = "height", .type = STK_KEY_INT, SIDES, .doc = "With width, instead of size."},
    {.name = "width", .type = STK_KEY_INT, SIDES, .doc = "With height, instead of size."},
    {.name = "shorter",
     .type = STK_KEY_INT,
     SIDES,
     .doc = "The shorter side, the longer in proportion; instead of size."},
    {.name = "filter",
     .type = STK_KEY_WORD,
     .words = filter_words,
     .default_value = "bilinear",
     .doc = "How pixels are mixed."},
    {.name = "like",
     .type = STK_KEY_WORD,
     .words = resize_like_words,
     .default_value = "pil",
     .doc = "Whose pixels come out: PIL's, those of tf.image.resize (f32, unless nearest), or OpenCV's."},
    {.name = "antialias",
     .type = STK_KEY_BOOL,
     .doc = "Whether the filter widens when shrinking. Default: true, but false for tf and opencv, as theirs is."},
    END};
static const stk_key center_crop_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .doc = "Both sides, in pixels."},
    {.name = "height", .type = STK_KEY_INT, SIDES, .doc = "With width, instead of size."},
    {.name = "width", .type = STK_KEY_INT, SIDES, .doc = "With height, instead of size."},
    END};
static const char *const border_words[] = {"zero", "reflect", NULL};
static const stk_key random_crop_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .required = true, .doc = "Both sides, in pixels."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 65536,
     .doc = "Pixels added on each side first."},
    {.name = "border",
     .type = STK_KEY_WORD,
     .words = border_words,
     .default_value = "zero",
     .doc = "What those are; reflect: the image, mirrored at its outermost pixels."},
    END};
static const stk_key random_resized_crop_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .required = true, .doc = "Both sides of the result, in pixels."},
    {.name = "filter",
     .type = STK_KEY_WORD,
     .words = filter_words,
     .default_value = "bilinear",
     .doc = "As for resize."},
    {.name = "antialias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "As for resize."},
    END};
static const char *const axis_words[] = {"horizontal", "vertical", NULL};
static const stk_key random_flip_keys[] = {{.name = "axis",
                                            .type = STK_KEY_WORD,
                                            .words = axis_words,
                                            .default_value = "horizontal",
                                            .doc = "horizontal: left and right; vertical: top and bottom."},
                                           {.name = "alternate",
                                            .type = STK_KEY_BOOL,
                                            .default_value = "false",
                                            .doc = "Drawn for the first epoch only; then each image is mirrored in "
                                                   "every other epoch. Jordan 2024."},
                                           END};
static const stk_key range_end = {.name = "number", .type = STK_KEY_REAL};
#define RANGE(key_name, range, text)                                                                                   \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_LIST, .element = &range_end, .default_value = range, .doc = text             \
    }
#define CHANCE(range, text)                                                                                            \
    {                                                                                                                  \
        .name = "p", .type = STK_KEY_REAL, .default_value = range, .least = 0, .most = 1, .doc = text                  \
    }
#define STRENGTH(key_name, limit, text)                                                                                \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = limit, .doc = text           \
    }
static const char *const warp_words[] = {"nearest", "bilinear", NULL};
#define WARP_KEYS                                                                                                      \
    {.name = "filter",                                                                                                 \
     .type = STK_KEY_WORD,                                                                                             \
     .words = warp_words,                                                                                              \
     .default_value = "nearest",                                                                                       \
     .doc = "How pixels are mixed."},                                                                                  \
    {                                                                                                                  \
        .name = "fill", .type = STK_KEY_INT, .default_value = "0", .least = 0, .most = 255,                            \
        .doc = "The value of what comes from outside of the image."                                                    \
    }
static const stk_key color_jitter_keys[] = {
    STRENGTH("brightness", 100, "The factor lies between 1 - strength, at least 0, and 1 + strength; 0 leaves it out."),
    STRENGTH("contrast", 100, "As brightness; the rest is the mean grey."),
    STRENGTH("saturation", 100, "As brightness; the rest is the pixel's grey."),
    STRENGTH("hue", 0.5, "Turned by up to this part of the colour circle, either way."), END};
static const stk_key random_grayscale_keys[] = {CHANCE("0.1", "The chance."), END};
static const stk_key gaussian_blur_keys[] = {
    {.name = "kernel",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 255,
     .required = true,
     .doc = "The kernel's side in pixels, odd."},
    RANGE("sigma", "[0.1, 2.0]", "The least and the largest deviation, in pixels."),
    END};
static const stk_key random_erasing_keys[] = {
    CHANCE("0.5", "The chance."),
    RANGE("scale", "[0.02, 0.33]", "The least and the largest share of the area."),
    RANGE("ratio", "[0.3, 3.3]", "The least and the largest ratio of height to width."),
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What the rectangle is filled with."},
    END};
static const stk_key random_rotation_keys[] = {
    RANGE("degrees", "[-10, 10]", "The least and the largest angle, counter-clockwise."), WARP_KEYS, END};
static const stk_key random_affine_keys[] = {
    RANGE("degrees", "[0, 0]", "The least and the largest angle, clockwise."),
    RANGE("translate", "[0, 0]", "The largest moves sideways and upright, either way, as shares of width and height."),
    RANGE("scale", "[1, 1]", "The least and the largest factor."),
    RANGE("shear", "[0, 0]", "The least and the largest angle of shear along x."),
    RANGE("shear_y", "[0, 0]", "The least and the largest angle of shear along y."),
    WARP_KEYS,
    END};
static const stk_key randaugment_keys[] = {{.name = "n",
                                            .type = STK_KEY_INT,
                                            .default_value = "2",
                                            .least = 0,
                                            .most = 100,
                                            .doc = "Operations for each image."},
                                           {.name = "magnitude",
                                            .type = STK_KEY_INT,
                                            .default_value = "9",
                                            .least = 0,
                                            .most = 30,
                                            .doc = "How strong they are."},
                                           END};
static const stk_key pad_keys[] = {
    {.name = "size",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 65535,
     .doc = "Pixels on each side."},
#define SIDE(key_name)                                                                                                 \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_INT, .least = 0, .most = 65535, .doc = "Instead of size, on this side."      \
    }
    SIDE("top"),
    SIDE("left"),
    SIDE("bottom"),
    SIDE("right"),
#undef SIDE
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What the border is filled with."},
    END};
static const stk_key clip_keys[] = {
    {.name = "low", .type = STK_KEY_REAL, .default_value = "0", .doc = "The least value."},
    {.name = "high", .type = STK_KEY_REAL, .default_value = "1", .doc = "The largest value."},
    END};
static const stk_key cast_keys[] = {
    {.name = "dtype", .type = STK_KEY_WORD, .words = dtype_words, .required = true, .doc = "The element type."}, END};
static const stk_key scale_keys[] = {{.name = "factor",
                                      .type = STK_KEY_REAL,
                                      .required = true,
                                      .doc = "Each value is multiplied by it, as f32; 1/255 may be written so."},
                                     END};
static const stk_key normalize_keys[] = {
    {.name = "name",
     .type = STK_KEY_WORD,
     .words = normalize_words,
     .doc = "Known constants; instead of mean and std."},
    {.name = "mean",
     .type = STK_KEY_LIST,
     .element = &channel_number,
     .doc = "One for each channel, of values from 0 to 1."},
    {.name = "std", .type = STK_KEY_LIST, .element = &channel_number, .doc = "One for each channel."},
    END};
static const stk_key one_hot_keys[] = {{.name = "classes",
                                        .type = STK_KEY_INT,
                                        .least = 1,
                                        .most = 1000000,
                                        .required = true,
                                        .doc = "The length of the label's vector."},
                                       END};
static const stk_key field_name_key = {.name = "name", .type = STK_KEY_TEXT};
static const stk_key with_keys[] = {
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &field_name_key,
     .one_is_list = true,
     .required = true,
     .doc = "Their names: mask, or [image, mask]."},
    {.name = "stages",
     .type = STK_KEY_LIST,
     .element = &stk_stage_key,
     .required = true,
     .doc = "For one field any stages. For several those that move pixels: resize, crops, flips, rotation, affine, "
            "pad; they draw once for all fields, which must be equally large."},
    {.name = "images",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 8,
     .doc = "How many of the fields are images, from the first on. The others are masks, whose values are never mixed "
            "and whose outside is 0."},
    END};
static const stk_key tokenize_keys[] = {
    {.name = "tokenizer",
     .type = STK_KEY_TEXT,
     .required = true,
     .doc = "bytes, or a tokenizer.json, vocab.json (with merges.txt beside it), vocab.txt or the folder of one."},
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1 << 24,
     .doc = "Tokens of a sample at most; what is more is left out. Default: all."},
    {.name = "pad",
     .type = STK_KEY_BOOL,
     .doc = "Whether samples are filled up to length; otherwise they differ in length, for the key pad. Default: true "
            "with a length."},
    {.name = "special",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether with the tokens that the tokenizer puts around a text, as [CLS] and [SEP]."},
    {.name = "pad_id",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that fills up. Default: the tokenizer's [PAD], <pad>, <|pad|> or <|endoftext|>, else 0."},
    {.name = "lowercase",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "For vocab.txt: lower case, without accents."},
    END};
static const stk_key stage_kinds[] = {
    {.name = "with",
     .type = STK_KEY_MAP,
     .keys = with_keys,
     .no_short = true,
     .doc = "Stages of other fields than the image, or of several with the same random draws."},
    {.name = "decode_mask",
     .type = STK_KEY_NONE,
     .doc = "PNG to class numbers as they are stored, of a palette or grey."},
    {.name = "decode", .type = STK_KEY_MAP, .keys = decode_keys, .doc = "JPEG or PNG to pixels."},
    {.name = "resize", .type = STK_KEY_MAP, .keys = resize_keys, .doc = "Resizing."},
    {.name = "center_crop", .type = STK_KEY_MAP, .keys = center_crop_keys, .doc = "The middle of the image."},
    {.name = "random_crop",
     .type = STK_KEY_MAP,
     .keys = random_crop_keys,
     .doc = "A random square of the padded image."},
    {.name = "random_resized_crop",
     .type = STK_KEY_MAP,
     .keys = random_resized_crop_keys,
     .doc = "A random part (8-100 % of the area, ratio 3/4 to 4/3), resized."},
    {.name = "random_flip",
     .type = STK_KEY_MAP,
     .keys = random_flip_keys,
     .doc = "Mirrors left and right, or top and bottom, with chance 1/2."},
    {.name = "color_jitter",
     .type = STK_KEY_MAP,
     .keys = color_jitter_keys,
     .doc = "Random brightness, contrast, saturation and hue, in random order, as torchvision's. u8."},
    {.name = "random_grayscale", .type = STK_KEY_MAP, .keys = random_grayscale_keys, .doc = "Grey by chance. u8."},
    {.name = "gaussian_blur", .type = STK_KEY_MAP, .keys = gaussian_blur_keys, .doc = "A blur of random width. u8."},
    {.name = "random_erasing",
     .type = STK_KEY_MAP,
     .keys = random_erasing_keys,
     .doc = "A random rectangle gets one value, as torchvision's."},
    {.name = "random_rotation",
     .type = STK_KEY_MAP,
     .keys = random_rotation_keys,
     .doc = "Turned about the middle, the size kept. u8."},
    {.name = "random_affine",
     .type = STK_KEY_MAP,
     .keys = random_affine_keys,
     .doc = "Turned, moved, scaled and sheared, the size kept; as torchvision's. u8."},
    {.name = "randaugment",
     .type = STK_KEY_MAP,
     .keys = randaugment_keys,
     .doc = "n operations out of 14, with torchvision's table of strengths. u8."},
    {.name = "pad", .type = STK_KEY_MAP, .keys = pad_keys, .doc = "A border of one value."},
    {.name = "clip", .type = STK_KEY_MAP, .keys = clip_keys, .doc = "Keeps values between two numbers."},
    {.name = "layout", .type = STK_KEY_NONE, .doc = "[H,W,C] to [C,H,W]; the last stage."},
    {.name = "cast", .type = STK_KEY_MAP, .keys = cast_keys, .doc = "Changes the element type."},
    {.name = "scale", .type = STK_KEY_MAP, .keys = scale_keys, .doc = "Multiplies by a factor."},
    {.name = "normalize",
     .type = STK_KEY_MAP,
     .keys = normalize_keys,
     .doc = "Mean and deviation of each channel; u8 is divided by 255 first."},
    {.name = "tokenize",
     .type = STK_KEY_MAP,
     .keys = tokenize_keys,
     .doc = "Text to token numbers; works on the field text."},
    {.name = "one_hot",
     .type = STK_KEY_MAP,
     .keys = one_hot_keys,
     .doc = "Class numbers to vectors; works on the label."},
    END};
const stk_key stk_stage_key = {.name = "stage", .type = STK_KEY_CHOICE, .keys = stage_kinds};
