/* The keys of a recipe, with types, defaults and meaning: the one list that parsing, messages and docs/recipe.md share,
 * and for that reason one long file. */
#include "train/recipe.h"

#define END                                                                                                            \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
#define SIDES .least = 1, .most = 65536

static const char *const like_words[] = {"pytorch", "keras", NULL};
static const char *const init_words[] = {"default",        "he_normal",         "he_uniform", "glorot_normal",
                                         "glorot_uniform", "he_normal_fan_out", "zero",       NULL};

/* --- stages --- */

static const char *const normalize_words[] = {"mnist", "cifar10", "imagenet", NULL};
static const char *const dtype_words[] = {"f32", "u8", NULL};
static const char *const filter_words[] = {"bilinear", "bicubic", "nearest", NULL};
static const char *const resize_like_words[] = {"pil", "tf", "opencv", NULL};
static const stk_key channel_number = {.name = "number", .type = STK_KEY_REAL};

static const stk_key decode_keys[] = {
    {.name = "channels", .type = STK_KEY_INT, .standard = "3", .least = 1, .most = 3, .doc = "1 for grey, 3 for RGB."},
    {.name = "exif",
     .type = STK_KEY_BOOL,
     .standard = "false",
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
     .standard = "bilinear",
     .doc = "How pixels are mixed."},
    {.name = "like",
     .type = STK_KEY_WORD,
     .words = resize_like_words,
     .standard = "pil",
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
static const stk_key random_crop_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .required = true, .doc = "Both sides, in pixels."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .standard = "0",
     .least = 0,
     .most = 65536,
     .doc = "Pixels of zeros on each side first."},
    END};
static const stk_key random_resized_crop_keys[] = {
    {.name = "size", .type = STK_KEY_INT, SIDES, .required = true, .doc = "Both sides of the result, in pixels."},
    {.name = "filter", .type = STK_KEY_WORD, .words = filter_words, .standard = "bilinear", .doc = "As for resize."},
    {.name = "antialias", .type = STK_KEY_BOOL, .standard = "true", .doc = "As for resize."},
    END};
static const char *const axis_words[] = {"horizontal", "vertical", NULL};
static const stk_key random_flip_keys[] = {{.name = "axis",
                                            .type = STK_KEY_WORD,
                                            .words = axis_words,
                                            .standard = "horizontal",
                                            .doc = "horizontal: left and right; vertical: top and bottom."},
                                           END};
static const stk_key range_end = {.name = "number", .type = STK_KEY_REAL};
#define RANGE(key_name, range, text)                                                                                   \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_LIST, .element = &range_end, .standard = range, .doc = text                  \
    }
#define CHANCE(range, text)                                                                                            \
    {                                                                                                                  \
        .name = "p", .type = STK_KEY_REAL, .standard = range, .least = 0, .most = 1, .doc = text                       \
    }
#define STRENGTH(key_name, limit, text)                                                                                \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_REAL, .standard = "0", .least = 0, .most = limit, .doc = text                \
    }
static const char *const warp_words[] = {"nearest", "bilinear", NULL};
#define WARP_KEYS                                                                                                      \
    {.name = "filter",                                                                                                 \
     .type = STK_KEY_WORD,                                                                                             \
     .words = warp_words,                                                                                              \
     .standard = "nearest",                                                                                            \
     .doc = "How pixels are mixed."},                                                                                  \
    {                                                                                                                  \
        .name = "fill", .type = STK_KEY_INT, .standard = "0", .least = 0, .most = 255,                                 \
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
    {.name = "value", .type = STK_KEY_REAL, .standard = "0", .doc = "What the rectangle is filled with."},
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
static const stk_key randaugment_keys[] = {
    {.name = "n", .type = STK_KEY_INT, .standard = "2", .least = 0, .most = 100, .doc = "Operations for each image."},
    {.name = "magnitude", .type = STK_KEY_INT, .standard = "9", .least = 0, .most = 30, .doc = "How strong they are."},
    END};
static const stk_key pad_keys[] = {
    {.name = "size", .type = STK_KEY_INT, .standard = "0", .least = 0, .most = 65535, .doc = "Pixels on each side."},
#define SIDE(key_name)                                                                                                 \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_INT, .least = 0, .most = 65535, .doc = "Instead of size, on this side."      \
    }
    SIDE("top"),
    SIDE("left"),
    SIDE("bottom"),
    SIDE("right"),
#undef SIDE
    {.name = "value", .type = STK_KEY_REAL, .standard = "0", .doc = "What the border is filled with."},
    END};
static const stk_key clip_keys[] = {
    {.name = "low", .type = STK_KEY_REAL, .standard = "0", .doc = "The least value."},
    {.name = "high", .type = STK_KEY_REAL, .standard = "1", .doc = "The largest value."},
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
static const stk_key stage_key; /* stages of several fields hold stages */
static const stk_key with_keys[] = {
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &field_name_key,
     .one_is_list = true,
     .required = true,
     .doc = "Their names: mask, or [image, mask]."},
    {.name = "stages",
     .type = STK_KEY_LIST,
     .element = &stage_key,
     .required = true,
     .doc = "For one field any stages. For several those that move pixels: resize, crops, flips, rotation, affine, "
            "pad; they draw once for all fields, which must be equally large."},
    {.name = "images",
     .type = STK_KEY_INT,
     .standard = "1",
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
     .doc = "Whether samples are filled up to length; otherwise they differ in length, for data.pad. Default: true "
            "with a length."},
    {.name = "special",
     .type = STK_KEY_BOOL,
     .standard = "true",
     .doc = "Whether with the tokens that the tokenizer puts around a text, as [CLS] and [SEP]."},
    {.name = "pad_id",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that fills up. Default: the tokenizer's [PAD], <pad>, <|pad|> or <|endoftext|>, else 0."},
    {.name = "lowercase",
     .type = STK_KEY_BOOL,
     .standard = "true",
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
static const stk_key stage_key = {.name = "stage", .type = STK_KEY_CHOICE, .keys = stage_kinds};

/* --- data --- */

extern const stk_key stk_source_kinds[]; /* data sets of data sets hold sources */

static const char *const cache_words[] = {"none", "memory", "disk", "auto", NULL};
static const stk_key cache_keys[] = {
    {.name = "in",
     .type = STK_KEY_WORD,
     .words = cache_words,
     .required = true,
     .doc =
         "memory: as many records as fit into data.memory. disk: one file, shared by runs and processes. auto: memory, "
         "where all of it fits and a few samples are made clearly faster with it; else none."},
    {.name = "path",
     .type = STK_KEY_TEXT,
     .doc = "On disk: the file. Default: one in the cache folder ($STOKER_CACHE)."},
    END};
static const char *const on_error_words[] = {"fail", "skip", "replace", "stop", NULL};
static const stk_key on_error_keys[] = {
    {.name = "policy",
     .type = STK_KEY_WORD,
     .words = on_error_words,
     .required = true,
     .doc = "fail (or stop): the run stops and names it. skip: its sample is left out, and its batch is shorter; in "
            "training, where a step needs full batches, it is replaced. replace: another, drawn by key, takes its "
            "place. All are counted and listed."},
    {.name = "most",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e15,
     .doc = "Different records that may be skipped or replaced, from where a run starts or goes on; one more stops it. "
            "Default: 1 % of the samples, but at least 100."},
    END};
static const char *const remainder_words[] = {"drop", "keep", NULL};
static const stk_key idx_keys[] = {
    {.name = "images", .type = STK_KEY_TEXT, .required = true, .doc = "The IDX file of images, plain or .gz."},
    {.name = "labels", .type = STK_KEY_TEXT, .required = true, .doc = "The IDX file of labels, plain or .gz."},
    END};
static const stk_key path_key = {.name = "path", .type = STK_KEY_TEXT};
#define PATHS(key_name, text)                                                                                          \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_LIST, .element = &path_key, .one_is_list = true, .required = true,           \
        .doc = text                                                                                                    \
    }
static const char *const by_words[] = {"folder", NULL};
static const stk_key files_keys[] = {
    PATHS("paths", "Files, folders (all their images, at any depth) and patterns like photos/*.jpg; sorted by name."),
    {.name = "by", .type = STK_KEY_WORD, .words = by_words, .doc = "The label is the name of the folder a file is in."},
    {.name = "labels", .type = STK_KEY_TEXT, .doc = "A file of lines name<TAB or comma>label; instead of by."},
    END};
static const char *const feature_words[] = {"encoded", "u8",   "i8",  "bool", "i32", "i64",
                                            "f16",     "bf16", "f32", "f64",  NULL};
static const stk_key side_key = {.name = "side", .type = STK_KEY_INT, .least = 1, .most = 1e12};
static const stk_key feature_keys[] = {
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = feature_words,
     .required = true,
     .doc = "The element type; encoded: one JPEG or PNG file."},
    {.name = "shape",
     .type = STK_KEY_LIST,
     .element = &side_key,
     .standard = "[]",
     .doc = "Of one sample's array; [] is a single number."},
    {.name = "key", .type = STK_KEY_TEXT, .doc = "The Example's key, as image/encoded. Default: the field's name."},
    {.name = "default",
     .type = STK_KEY_REAL,
     .doc = "What all elements are where the key is missing. Default: a missing key is an error."},
    END};
static const stk_key feature_key = {.name = "feature",
                                    .type = STK_KEY_MAP,
                                    .keys = feature_keys,
                                    .doc = "A field out of a feature of tf.train.Example; u8 alone is {dtype: u8}."};
static const stk_key tfrecord_keys[] = {
    PATHS("files", "Shards, plain, GZIP or ZLIB; patterns stand for their matches by name."),
    {.name = "parse_example",
     .type = STK_KEY_NAMED,
     .element = &feature_key,
     .required = true,
     .doc = "The fields of a sample."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .standard = "false",
     .doc = "Whether the shards are read into memory at the start and not again; faster where records are small."},
    END};
static const stk_key extensions_key = {.name = "extensions", .type = STK_KEY_TEXT};
static const stk_key tar_keys[] = {
    PATHS("files", "Shards, plain or .gz; patterns stand for their matches by name."),
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &extensions_key,
     .doc = "The fields of a sample and what they are made of: {image: jpg;png, mask: seg.png}. Default: image and "
            "label, of jpg;jpeg;png and cls, as far as the first sample has them."},
    END};
static const char *const token_type_words[] = {"auto", "u16", "u32", NULL};
static const stk_key tokens_keys[] = {
    PATHS("files", "Files of token numbers; patterns stand for their matches by name."),
    {.name = "length",
     .type = STK_KEY_INT,
     .standard = "1024",
     .least = 1,
     .most = 1 << 28,
     .doc = "Tokens of a sample; the targets are those one further."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e15,
     .doc = "Tokens from the start of one window to that of the next. Default: length."},
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = token_type_words,
     .standard = "auto",
     .doc = "Of the numbers, little-endian; auto: as NAME.json beside the file or its own header says."},
    {.name = "vocabulary",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Numbers that are not below it are errors. Default: as NAME.json says, or any."},
    END};
static const char *const record_words[] = {"line", "file", NULL};
static const stk_key text_keys[] = {
    PATHS("files", "Text files, plain or .gz; patterns stand for their matches by name."),
    {.name = "record", .type = STK_KEY_WORD, .words = record_words, .standard = "line", .doc = "What a sample is."},
    {.name = "by", .type = STK_KEY_WORD, .words = by_words, .doc = "The label is the name of the folder a file is in."},
    {.name = "skip",
     .type = STK_KEY_INT,
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .doc = "The first lines of each file do not count."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .standard = "false",
     .doc = "Whether the files are read into memory at the start and not again; faster where lines are short."},
    END};
static const char *const cell_words[] = {"f32", "f64", "i32", "i64", "i8", "u8", "bool", "text", "class", NULL};
static const stk_key column_key = {.name = "column", .type = STK_KEY_TEXT};
static const stk_key csv_field_keys[] = {
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = cell_words,
     .required = true,
     .doc =
         "Of numbers; text: the bytes of the cell, for the stage tokenize; class: the number of the cell's text among "
         "the classes."},
    {.name = "columns",
     .type = STK_KEY_LIST,
     .element = &column_key,
     .one_is_list = true,
     .doc = "The column, or several columns of numbers that become one array. Default: the field's name."},
    {.name = "default",
     .type = STK_KEY_TEXT,
     .doc = "The number for missing cells. Default: a missing cell is an error."},
    {.name = "classes",
     .type = STK_KEY_LIST,
     .element = &column_key,
     .doc = "The classes, of which another is an error. Default: the texts that are there, for which all rows are read "
            "once."},
    END};
static const stk_key csv_field_key = {
    .name = "field", .type = STK_KEY_MAP, .keys = csv_field_keys, .doc = "A field; f32 alone is {dtype: f32}."};
static const stk_key csv_keys[] = {
    PATHS("files", "CSV or TSV files, plain or .gz; patterns stand for their matches by name."),
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &csv_field_key,
     .required = true,
     .doc = "The fields of a sample: {label: class, x: {dtype: f32, columns: [a, b]}}."},
    {.name = "delimiter", .type = STK_KEY_TEXT, .standard = ",", .doc = "One sign between cells, or tab."},
    {.name = "header",
     .type = STK_KEY_BOOL,
     .standard = "true",
     .doc = "Whether the first row of each file names the columns; otherwise they are 0, 1, ..."},
    {.name = "quotes",
     .type = STK_KEY_BOOL,
     .standard = "true",
     .doc =
         "Whether cells may be quoted, as RFC 4180 says; false: a quote is a sign like others, as in most TSV files."},
    {.name = "missing", .type = STK_KEY_TEXT, .doc = "What stands for a missing cell besides the empty one, as NA."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .standard = "false",
     .doc = "Whether the files are read into memory at the start and not again; faster where rows are short."},
    END};
static const char *const policy_words[] = {"data", "file", "auto", "off", NULL};
static const stk_key shard_keys[] = {{.name = "count",
                                      .type = STK_KEY_INT,
                                      .least = 1,
                                      .most = 1000000,
                                      .required = true,
                                      .doc = "How many shards there are."},
                                     {.name = "index",
                                      .type = STK_KEY_INT,
                                      .least = 0,
                                      .most = 1000000,
                                      .required = true,
                                      .doc = "Which one to use, from 0."},
                                     {.name = "policy",
                                      .type = STK_KEY_WORD,
                                      .words = policy_words,
                                      .standard = "data",
                                      .doc = "data: every count-th sample; file: the records of every count-th file, "
                                             "before skip and take, with at least one file for each; auto: by file "
                                             "where the source consists of files, else by data; off: all samples."},
                                     END};
static const stk_key shuffle_keys[] = {
    {.name = "on", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether at all; 'shuffle: true' is short for it."},
    {.name = "window",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .standard = "0",
     .doc = "Shuffles as tf.data does with a buffer of so many samples, so that records that lie together are read "
            "together; 0: everything is shuffled."},
    {.name = "reshuffle",
     .type = STK_KEY_BOOL,
     .standard = "true",
     .doc = "Whether each epoch has an order of its own."},
    END};

static const stk_key windows_keys[] = {
    {.name = "size", .type = STK_KEY_INT, .least = 1, .most = 1e9, .required = true, .doc = "Samples of a window."},
    {.name = "shift",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e9,
     .doc = "From the first sample of a window to that of the next. Default: size."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e9,
     .standard = "1",
     .doc = "Between the samples of a window."},
    {.name = "remainder",
     .type = STK_KEY_WORD,
     .words = remainder_words,
     .standard = "drop",
     .doc = "Windows at the end that are not full; kept, they are shorter, and have to be padded."},
    END};
static const stk_key packed_field_key = {.name = "field", .type = STK_KEY_TEXT};
static const stk_key pack_keys[] = {
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .required = true,
     .doc = "Elements of a row."},
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &packed_field_key,
     .one_is_list = true,
     .doc = "Those that are packed; the others are left out. Default: all."},
    {.name = "cut",
     .type = STK_KEY_BOOL,
     .standard = "false",
     .doc = "Whether longer samples are cut; otherwise the first of them is an error."},
    {.name = "value", .type = STK_KEY_REAL, .standard = "0", .doc = "What rows are filled up with."},
    END};
static const stk_key value_key = {.name = "value", .type = STK_KEY_TEXT};
static const stk_key filter_keys[] = {
    {.name = "field", .type = STK_KEY_TEXT, .standard = "label", .doc = "What is looked at."},
    {.name = "keep",
     .type = STK_KEY_LIST,
     .element = &value_key,
     .one_is_list = true,
     .doc = "Whole numbers, or classes by their names: only records with one of them."},
    {.name = "drop",
     .type = STK_KEY_LIST,
     .element = &value_key,
     .one_is_list = true,
     .doc = "The same: only records with none of them."},
    {.name = "min", .type = STK_KEY_REAL, .doc = "The least number."},
    {.name = "max", .type = STK_KEY_REAL, .doc = "The largest number."},
    {.name = "min_bytes", .type = STK_KEY_INT, .least = 0, .most = 1e15, .doc = "The least size, of a file's bytes."},
    {.name = "max_bytes", .type = STK_KEY_INT, .least = 0, .most = 1e15, .doc = "The largest size."},
    {.name = "min_length",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1e15,
     .doc = "The least length of the first side, after the stages."},
    {.name = "max_length", .type = STK_KEY_INT, .least = 0, .most = 1e15, .doc = "The largest."},
    END};
static const stk_key filter_key = {.name = "filter",
                                   .type = STK_KEY_MAP,
                                   .keys = filter_keys,
                                   .no_short = true,
                                   .doc = "What a record must be to be used: everything that is given. Labels stay "
                                          "what they are."};

#define ORDER_KEYS                                                                                                     \
    {.name = "stages",                                                                                                 \
     .type = STK_KEY_LIST,                                                                                             \
     .element = &stage_key,                                                                                            \
     .doc = "What is done to each sample, in this order; see below."},                                                 \
        {.name = "filter",                                                                                             \
         .type = STK_KEY_LIST,                                                                                         \
         .element = &filter_key,                                                                                       \
         .one_is_list = true,                                                                                          \
         .doc = "Only the records that pass, before skip and take: {keep: [0, 1]}, {field: image, min_bytes: 2000}."}, \
        {.name = "unbatch",                                                                                            \
         .type = STK_KEY_BOOL,                                                                                         \
         .doc = "Whether the rows of each sample are samples themselves, after take and before shuffle."},             \
        {.name = "windows",                                                                                            \
         .type = STK_KEY_MAP,                                                                                          \
         .keys = windows_keys,                                                                                         \
         .doc = "Samples one after the other as one, with a side more, after take and before shuffle."},               \
        {.name = "pack",                                                                                               \
         .type = STK_KEY_MAP,                                                                                          \
         .keys = pack_keys,                                                                                            \
         .doc = "Several short samples in one row, after take and before shuffle, with fields segment and position."}, \
        {.name = "shuffle", .type = STK_KEY_MAP, .keys = shuffle_keys, .doc = "Another order. Default: none."},        \
        {.name = "skip", .type = STK_KEY_INT, .least = 0, .most = 1e15, .doc = "Leaves out the first n samples."},     \
        {.name = "take", .type = STK_KEY_INT, .least = 1, .most = 1e15, .doc = "Uses only the next n samples."},       \
        {.name = "shard",                                                                                              \
         .type = STK_KEY_MAP,                                                                                          \
         .keys = shard_keys,                                                                                           \
         .no_short = true,                                                                                             \
         .doc = "Uses one of so many shards only."},                                                                   \
    {                                                                                                                  \
        .name = "repeat", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                                \
        .doc = "So many passes make one epoch, each shuffled anew."                                                    \
    }

#define PART_KEYS                                                                                                      \
    ORDER_KEYS,                                                                                                        \
        {.name = "index",                                                                                              \
         .type = STK_KEY_TEXT,                                                                                         \
         .doc = "Entry points of a folder's JPEG files, which make crops faster. auto: what is not known is learned "  \
                "in the first epoch and kept; none; or the path of an index. Default: the one that 'stoker index' "    \
                "or an earlier run has left there."},                                                                  \
        {.name = "cache",                                                                                              \
         .type = STK_KEY_MAP,                                                                                          \
         .keys = cache_keys,                                                                                           \
         .doc = "Keeps what the stages before the first random one make of each record: memory, disk, auto or none; "  \
                "see docs/pipelines.md. Default: none."},                                                              \
        {.name = "on_error",                                                                                           \
         .type = STK_KEY_MAP,                                                                                          \
         .keys = on_error_keys,                                                                                        \
         .doc = "What becomes of a record that is corrupt or cannot be read: fail, skip or replace, or {policy: "      \
                "skip, most: 100}. Default: fail."},                                                                   \
    {                                                                                                                  \
        .name = "remainder", .type = STK_KEY_WORD, .words = remainder_words,                                           \
        .doc = "The samples that do not fill the last batch. Default: drop for train, keep for valid and test."        \
    }

/* --- data sets of data sets --- */

static const stk_key new_name_key = {.name = "name", .type = STK_KEY_TEXT};
static const char *const volume_dtype_words[] = {"f32", "u8", "i32", NULL};
static const stk_key volume_keys[] = {
    PATHS("files",
          "Files and patterns: .nii, .nii.gz or .npy; sorted by name. Number i of one field belongs to number i of "
          "the others."),
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = volume_dtype_words,
     .standard = "f32",
     .doc = "f32: scaled as the file says; u8 or i32: of labels, which must be whole numbers."},
    END};
static const stk_key volume_key = {
    .name = "field", .type = STK_KEY_MAP, .keys = volume_keys, .doc = "One field's files."};
static const stk_key window_side_key = {.name = "side", .type = STK_KEY_INT, .least = 1, .most = 65536};
static const char *const window_words[] = {"random", "middle", "grid", NULL};
static const char *const orientation_words[] = {"stored", "ras", NULL};
static const stk_key volumes_keys[] = {
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &volume_key,
     .alone = "image",
     .required = true,
     .doc = "{image: scans/*.nii.gz, mask: {files: labels/*.nii.gz, dtype: u8}}."},
    {.name = "window",
     .type = STK_KEY_LIST,
     .element = &window_side_key,
     .doc = "Its sides, [z, y, x]. Default: whole volumes."},
    {.name = "windows",
     .type = STK_KEY_WORD,
     .words = window_words,
     .standard = "random",
     .doc = "Where they lie: drawn anew in each epoch, in the middle, or side by side over the whole volume."},
    {.name = "per_volume",
     .type = STK_KEY_INT,
     .standard = "1",
     .least = 1,
     .most = 1e6,
     .doc = "Random windows of each volume in an epoch."},
    {.name = "orientation",
     .type = STK_KEY_WORD,
     .words = orientation_words,
     .standard = "stored",
     .doc = "ras: NIfTI volumes are turned so that z, y, x go up, to the front and to the right."},
    END};
static const stk_key set_keys[] = {{.name = "source",
                                    .type = STK_KEY_CHOICE,
                                    .keys = stk_source_kinds,
                                    .required = true,
                                    .doc = "Where its samples come from."},
                                   {.name = "rename",
                                    .type = STK_KEY_NAMED,
                                    .element = &new_name_key,
                                    .doc = "Other names for fields, before its stages: {image: mask}."},
                                   ORDER_KEYS,
                                   {.name = "weight",
                                    .type = STK_KEY_REAL,
                                    .least = 0,
                                    .standard = "1",
                                    .doc = "In a mix, how often it is drawn in proportion to the others."},
                                   END};
static const stk_key set_key = {
    .name = "data set",
    .type = STK_KEY_MAP,
    .keys = set_keys,
    .no_short = true,
    .doc =
        "One of those that are put together. Its order is made in the same sequence as a part's, and its stages come "
        "before those of the part. All have the same fields, but in a zip, where no two may have the same."};
#define OF                                                                                                             \
    {                                                                                                                  \
        .name = "of", .type = STK_KEY_LIST, .element = &set_key, .required = true,                                     \
        .doc = "The data sets: [{source: ...}, {source: ..., take: 100}]."                                             \
    }
static const stk_key concatenate_keys[] = {OF, END};
static const stk_key zip_keys[] = {OF, END};
static const stk_key interleave_keys[] = {
    OF,
    {.name = "cycle",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "How many take turns; one that has ended is replaced by the next. Default: all."},
    {.name = "block",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e15,
     .standard = "1",
     .doc = "Samples of each in a turn."},
    END};
static const char *const until_words[] = {"all", "first", NULL};
static const stk_key mix_keys[] = {
    OF,
    {.name = "until",
     .type = STK_KEY_WORD,
     .words = until_words,
     .standard = "all",
     .doc = "first: the epoch ends where one is drawn that has ended; all: the others go on."},
    END};
const stk_key stk_source_kinds[] = {
    {.name = "images",
     .type = STK_KEY_TEXT,
     .doc = "A folder with one sub-folder for each class, of JPEG and PNG files."},
    {.name = "idx", .type = STK_KEY_MAP, .keys = idx_keys, .no_short = true, .doc = "IDX files, as MNIST comes."},
    {.name = "files", .type = STK_KEY_MAP, .keys = files_keys, .doc = "JPEG and PNG files by list, pattern or folder."},
    {.name = "pairs",
     .type = STK_KEY_NAMED,
     .element = &path_key,
     .alone = "image",
     .doc =
         "Images that belong together, a folder for each field: {image: photos, mask: masks}. Partners have the same "
         "path below their folders, but for the ending."},
    {.name = "volumes",
     .type = STK_KEY_MAP,
     .keys = volumes_keys,
     .doc = "3-D arrays, one a file, NIfTI or NumPy; windows are read without the rest."},
    {.name = "npy",
     .type = STK_KEY_NAMED,
     .element = &path_key,
     .alone = "all",
     .doc = "Arrays of NumPy, a sample being a row: {image: x.npy, label: y.npy}, {image: a.npz:x, label: a.npz:y}; a "
            "path alone is one .npy, the image, or all arrays of a .npz under their own names."},
    {.name = "tfrecord",
     .type = STK_KEY_MAP,
     .keys = tfrecord_keys,
     .no_short = true,
     .doc = "TFRecord shards of tf.train.Example."},
    {.name = "tar", .type = STK_KEY_MAP, .keys = tar_keys, .doc = "Tar shards in WebDataset's naming."},
    {.name = "csv", .type = STK_KEY_MAP, .keys = csv_keys, .no_short = true, .doc = "Rows of CSV and TSV files."},
    {.name = "text", .type = STK_KEY_MAP, .keys = text_keys, .doc = "Lines of text files, or whole files."},
    {.name = "tokens",
     .type = STK_KEY_MAP,
     .keys = tokens_keys,
     .doc = "Windows of files of token numbers: tokens and, one further, targets."},
    {.name = "concatenate",
     .type = STK_KEY_MAP,
     .keys = concatenate_keys,
     .doc = "Several data sets, one after the other: {concatenate: [{source: ...}, {source: ...}]}."},
    {.name = "zip",
     .type = STK_KEY_MAP,
     .keys = zip_keys,
     .doc = "The fields of several data sets side by side, sample by sample; as long as the shortest."},
    {.name = "interleave",
     .type = STK_KEY_MAP,
     .keys = interleave_keys,
     .doc = "A block of samples of each of several data sets in turn."},
    {.name = "mix",
     .type = STK_KEY_MAP,
     .keys = mix_keys,
     .doc = "Samples of several data sets, drawn at random by their weights."},
    END};

#define SOURCE                                                                                                         \
    {                                                                                                                  \
        .name = "source", .type = STK_KEY_CHOICE, .keys = stk_source_kinds, .required = true,                          \
        .doc = "Where the samples come from."                                                                          \
    }
#define ALPHA(text)                                                                                                    \
    {                                                                                                                  \
        .name = "alpha", .type = STK_KEY_REAL, .standard = text, .least = 0, .most = 1000, .above = true,              \
        .doc = "The share is drawn from Beta(alpha, alpha) for each batch."                                            \
    }
#define SHARED_CLASSES                                                                                                 \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "The length that labels get as shares of classes, in all parts. Default: as many as the folder of "     \
               "images has, or the model."                                                                             \
    }
static const stk_key mixup_keys[] = {ALPHA("0.2"), SHARED_CLASSES, END};
static const stk_key cutmix_keys[] = {ALPHA("1"), SHARED_CLASSES, END};
static const stk_key train_keys[] = {
    SOURCE,
    PART_KEYS,
    {.name = "mixup",
     .type = STK_KEY_MAP,
     .keys = mixup_keys,
     .doc = "Each sample of a batch and its label are mixed with their neighbour's, as torchvision's MixUp does it. "
            "With cutmix too, one of the two is drawn for each batch."},
    {.name = "cutmix",
     .type = STK_KEY_MAP,
     .keys = cutmix_keys,
     .doc = "Each image gets a rectangle of its neighbour's, and the label a share, as torchvision's CutMix does it."},
    END};
static const stk_key test_keys[] = {SOURCE, PART_KEYS, END};
static const stk_key valid_keys[] = {
    {.name = "share",
     .type = STK_KEY_SHARE,
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "Cut from train by key, with the stages of test; instead of source. 'valid: 10%' is short for it."},
    {.name = "source", .type = STK_KEY_CHOICE, .keys = stk_source_kinds, .doc = "Where the samples come from."},
    PART_KEYS,
    END};
static const stk_key data_keys[] = {
    {.name = "train",
     .type = STK_KEY_MAP,
     .keys = train_keys,
     .required = true,
     .no_short = true,
     .doc = "What to learn from."},
    {.name = "valid",
     .type = STK_KEY_MAP,
     .keys = valid_keys,
     .doc = "Evaluated after each epoch; chooses the best checkpoint and stops early."},
    {.name = "test", .type = STK_KEY_MAP, .keys = test_keys, .no_short = true, .doc = "Evaluated once, at the end."},
    {.name = "memory",
     .type = STK_KEY_MEMORY,
     .standard = "auto",
     .doc =
         "The most that all buffers of the data's pipelines may take together, never exceeded: 512MiB, or 10% of the "
         "machine's. auto: a quarter of what is free, and what sources keep in memory."},
    END};

/* --- model --- */

#define CLASSES                                                                                                        \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "How many classes there are. Default: as many as the folder of images has."                             \
    }

static const stk_key width_key = {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6};
static const stk_key mlp_keys[] = {{.name = "hidden",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .standard = "[128]",
                                    .doc = "The widths of the hidden layers."},
                                   {.name = "dropout",
                                    .type = STK_KEY_REAL,
                                    .standard = "0",
                                    .least = 0,
                                    .most = 0.99,
                                    .doc = "The rate after each hidden layer."},
                                   CLASSES,
                                   END};
static const stk_key cnn_keys[] = {{.name = "widths",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .standard = "[32, 64, 128]",
                                    .doc = "Filters of each convolution; 2x2 max pooling stands between them."},
                                   CLASSES,
                                   END};
static const char *const stem_words[] = {"imagenet", "cifar", NULL};
static const stk_key resnet_keys[] = {{.name = "stem",
                                       .type = STK_KEY_WORD,
                                       .words = stem_words,
                                       .standard = "imagenet",
                                       .doc = "imagenet: 7x7 stride 2 and pooling; cifar: 3x3, for small images."},
                                      CLASSES,
                                      END};

enum { N_LAYER_KINDS = 15 };
extern const stk_key stk_layer_kinds[N_LAYER_KINDS + 1]; /* residual layers hold layers */
static const stk_key layer_key = {.name = "layer", .type = STK_KEY_CHOICE, .keys = stk_layer_kinds};

#define LIKE                                                                                                           \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = like_words, .standard = "pytorch",                              \
        .doc = "Whose arithmetic and defaults to follow."                                                              \
    }
#define INIT                                                                                                           \
    {                                                                                                                  \
        .name = "init", .type = STK_KEY_WORD, .words = init_words, .standard = "default",                              \
        .doc = "How weights begin; default: uniform +-1/sqrt(fan in), as PyTorch."                                     \
    }

static const stk_key dense_keys[] = {
    {.name = "units",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e8,
     .required = true,
     .doc = "The width of the output."},
    {.name = "bias", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether a bias is added."},
    INIT,
    END};
static const stk_key conv2d_keys[] = {
    {.name = "filters",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .required = true,
     .doc = "Channels of the output."},
    {.name = "kernel",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .standard = "3",
     .doc = "Both sides of the kernel."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .standard = "1",
     .doc = "Pixels between outputs."},
    {.name = "dilation", .type = STK_KEY_INT, .least = 1, .most = 1024, .standard = "1", .doc = "Pixels between taps."},
    {.name = "groups",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .standard = "1",
     .doc = "Groups of channels that do not mix."},
    {.name = "padding", .type = STK_KEY_TEXT, .standard = "same", .doc = "same, none, or pixels on each side."},
    {.name = "bias", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether a bias is added."},
    INIT,
    LIKE,
    END};
static const stk_key batch_norm_keys[] = {{.name = "momentum",
                                           .type = STK_KEY_REAL,
                                           .least = 0,
                                           .most = 1,
                                           .above = true,
                                           .doc = "Of the running statistics. Default: 0.1, or 0.99 in Keras' sense."},
                                          {.name = "eps",
                                           .type = STK_KEY_REAL,
                                           .least = 0,
                                           .above = true,
                                           .doc = "Added to the variance. Default: 1e-5, or 1e-3 like Keras."},
                                          {.name = "zero_scale",
                                           .type = STK_KEY_BOOL,
                                           .standard = "false",
                                           .doc = "The scale starts at 0: for the end of a residual."},
                                          LIKE,
                                          END};
static const stk_key max_pool_keys[] = {
    {.name = "size",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .required = true,
     .doc = "Both sides of the window."},
    {.name = "stride", .type = STK_KEY_INT, .least = 1, .most = 1024, .doc = "Pixels between windows. Default: size."},
    {.name = "padding", .type = STK_KEY_INT, .least = 0, .most = 1024, .standard = "0", .doc = "Pixels on each side."},
    END};
static const stk_key avg_pool_keys[] = {{.name = "size",
                                         .type = STK_KEY_INT,
                                         .least = 1,
                                         .most = 1024,
                                         .required = true,
                                         .doc = "Both sides of the window, and the stride."},
                                        END};
static const stk_key dropout_keys[] = {{.name = "rate",
                                        .type = STK_KEY_REAL,
                                        .least = 0,
                                        .most = 0.99,
                                        .required = true,
                                        .doc = "The share that is zeroed in training."},
                                       END};
static const stk_key residual_keys[] = {
    {.name = "layers", .type = STK_KEY_LIST, .element = &layer_key, .required = true, .doc = "The way that learns."},
    {.name = "shortcut",
     .type = STK_KEY_LIST,
     .element = &layer_key,
     .standard = "[]",
     .doc = "Layers of the other way. Default: none."},
    END};

const stk_key stk_layer_kinds[N_LAYER_KINDS + 1] = {
    {.name = "dense", .type = STK_KEY_MAP, .keys = dense_keys, .doc = "Every input to every output."},
    {.name = "conv2d", .type = STK_KEY_MAP, .keys = conv2d_keys, .doc = "Convolution."},
    {.name = "batch_norm", .type = STK_KEY_MAP, .keys = batch_norm_keys, .doc = "Batch normalisation."},
    {.name = "relu", .type = STK_KEY_NONE, .doc = "max(x, 0)."},
    {.name = "gelu", .type = STK_KEY_NONE, .doc = "With the exact erf."},
    {.name = "silu", .type = STK_KEY_NONE, .doc = "x * sigmoid(x)."},
    {.name = "tanh", .type = STK_KEY_NONE, .doc = "Hyperbolic tangent."},
    {.name = "sigmoid", .type = STK_KEY_NONE, .doc = "1 / (1 + exp(-x))."},
    {.name = "softmax",
     .type = STK_KEY_NONE,
     .doc = "Shares that add up to 1; not before cross_entropy, which has its own."},
    {.name = "max_pool", .type = STK_KEY_MAP, .keys = max_pool_keys, .doc = "The largest of each window."},
    {.name = "avg_pool", .type = STK_KEY_MAP, .keys = avg_pool_keys, .doc = "The mean of each window."},
    {.name = "global_pool", .type = STK_KEY_NONE, .doc = "The mean of the whole image, for each channel."},
    {.name = "flatten", .type = STK_KEY_NONE, .doc = "An image to one row."},
    {.name = "dropout", .type = STK_KEY_MAP, .keys = dropout_keys, .doc = "Zeroes a share at random in training."},
    {.name = "residual", .type = STK_KEY_MAP, .keys = residual_keys, .doc = "The sum of layers and shortcut."},
    END};

static const stk_key model_kinds[] = {
    {.name = "mlp",
     .type = STK_KEY_MAP,
     .keys = mlp_keys,
     .no_short = true,
     .doc = "Flatten, dense layers with ReLU, dense."},
    {.name = "cnn",
     .type = STK_KEY_MAP,
     .keys = cnn_keys,
     .no_short = true,
     .doc = "3x3 convolutions with batch norm, ReLU and pooling, global mean, dense."},
    {.name = "resnet18", .type = STK_KEY_MAP, .keys = resnet_keys, .no_short = true, .doc = "He et al. 2016."},
    {.name = "layers",
     .type = STK_KEY_LIST,
     .element = &layer_key,
     .doc = "Your own, from input to output; see below."},
    END};

/* --- loss, optimiser, schedule --- */

static const stk_key cross_entropy_keys[] = {{.name = "smoothing",
                                              .type = STK_KEY_REAL,
                                              .standard = "0",
                                              .least = 0,
                                              .most = 0.99,
                                              .doc = "The share of each label that goes to all classes alike."},
                                             END};
static const stk_key loss_kinds[] = {
    {.name = "cross_entropy",
     .type = STK_KEY_MAP,
     .keys = cross_entropy_keys,
     .no_short = true,
     .doc = "Softmax cross-entropy."},
    {.name = "mse", .type = STK_KEY_NONE, .doc = "Mean squared error; labels must be vectors (one_hot)."},
    END};

#define RATE(text)                                                                                                     \
    {                                                                                                                  \
        .name = "lr", .type = STK_KEY_REAL, .standard = text, .least = 0, .above = true, .doc = "The learning rate."   \
    }
#define BETAS                                                                                                          \
    {.name = "beta1",                                                                                                  \
     .type = STK_KEY_REAL,                                                                                             \
     .standard = "0.9",                                                                                                \
     .least = 0,                                                                                                       \
     .most = 1,                                                                                                        \
     .above = true,                                                                                                    \
     .doc = "Decay of the mean of gradients."},                                                                        \
        {.name = "beta2",                                                                                              \
         .type = STK_KEY_REAL,                                                                                         \
         .standard = "0.999",                                                                                          \
         .least = 0,                                                                                                   \
         .most = 1,                                                                                                    \
         .above = true,                                                                                                \
         .doc = "Decay of the mean of squares."},                                                                      \
    {                                                                                                                  \
        .name = "eps", .type = STK_KEY_REAL, .least = 0, .above = true,                                                \
        .doc = "Added to the root. Default: 1e-8, or 1e-7 like Keras."                                                 \
    }
static const stk_key sgd_keys[] = {
    RATE("0.01"),
    {.name = "momentum", .type = STK_KEY_REAL, .standard = "0", .least = 0, .most = 1, .doc = "0: none."},
    {.name = "nesterov", .type = STK_KEY_BOOL, .standard = "false", .doc = "Nesterov's momentum."},
    {.name = "weight_decay",
     .type = STK_KEY_REAL,
     .standard = "0",
     .least = 0,
     .most = 1,
     .doc = "Added to the gradient, as L2; like Keras: taken from the weights."},
    LIKE,
    END};
static const stk_key adam_keys[] = {RATE("0.001"),
                                    BETAS,
                                    {.name = "weight_decay",
                                     .type = STK_KEY_REAL,
                                     .standard = "0",
                                     .least = 0,
                                     .most = 1,
                                     .doc = "Added to the gradient, as L2; like Keras: taken from the weights."},
                                    LIKE,
                                    END};
static const stk_key adamw_keys[] = {RATE("0.001"),
                                     BETAS,
                                     {.name = "weight_decay",
                                      .type = STK_KEY_REAL,
                                      .least = 0,
                                      .most = 1,
                                      .doc = "Taken from the weights. Default: 0.01, or 0.004 like Keras."},
                                     LIKE,
                                     END};
static const stk_key optimizer_kinds[] = {
    {.name = "sgd", .type = STK_KEY_MAP, .keys = sgd_keys, .no_short = true, .doc = "Stochastic gradient descent."},
    {.name = "adam", .type = STK_KEY_MAP, .keys = adam_keys, .no_short = true, .doc = "Kingma & Ba 2015."},
    {.name = "adamw", .type = STK_KEY_MAP, .keys = adamw_keys, .no_short = true, .doc = "Loshchilov & Hutter 2019."},
    END};

#define WARMUP                                                                                                         \
    {                                                                                                                  \
        .name = "warmup", .type = STK_KEY_REAL, .standard = "0", .least = 0, .most = 1e6,                              \
        .doc = "Epochs in which the rate grows linearly to its full value."                                            \
    }
static const stk_key constant_keys[] = {WARMUP, END};
static const stk_key step_keys[] = {{.name = "every",
                                     .type = STK_KEY_REAL,
                                     .least = 0,
                                     .most = 1e6,
                                     .above = true,
                                     .required = true,
                                     .doc = "Epochs between the steps."},
                                    {.name = "gamma",
                                     .type = STK_KEY_REAL,
                                     .standard = "0.1",
                                     .least = 0,
                                     .most = 1,
                                     .above = true,
                                     .doc = "The rate is multiplied by it each time."},
                                    WARMUP,
                                    END};
static const stk_key cosine_keys[] = {WARMUP,
                                      {.name = "final",
                                       .type = STK_KEY_REAL,
                                       .standard = "0",
                                       .least = 0,
                                       .most = 1,
                                       .doc = "The rate at the end, as a share of the full rate."},
                                      END};
static const stk_key schedule_kinds[] = {
    {.name = "constant",
     .type = STK_KEY_MAP,
     .keys = constant_keys,
     .no_short = true,
     .doc = "The same rate throughout."},
    {.name = "step", .type = STK_KEY_MAP, .keys = step_keys, .no_short = true, .doc = "Smaller every so many epochs."},
    {.name = "cosine",
     .type = STK_KEY_MAP,
     .keys = cosine_keys,
     .no_short = true,
     .doc = "Half a cosine, from full to final."},
    END};

/* --- the run --- */

static const stk_key boundary_key = {.name = "number", .type = STK_KEY_INT, .least = 1, .most = 2147483647};
static const stk_key pad_field_key = {.name = "field", .type = STK_KEY_TEXT};
static const stk_key pad_batch_keys[] = {
    {.name = "on", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether at all; 'pad: true' is short for it."},
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Of all batches; a longer sample stops the run. Default: the longest of each batch, found by reading all "
            "records once."},
    {.name = "max_length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Longer samples are cut here. Default: none is cut."},
    {.name = "value", .type = STK_KEY_REAL, .standard = "0", .doc = "What rows are filled up with."},
    {.name = "tokens",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e12,
     .doc = "Batches are of samples of like length, and of as many as make at most so many elements, padding included; "
            "batch does not count then."},
    {.name = "boundaries",
     .type = STK_KEY_LIST,
     .element = &boundary_key,
     .doc = "Batches are of samples whose lengths lie between two of these, as tf.data's bucket_by_sequence_length."},
    {.name = "batches",
     .type = STK_KEY_LIST,
     .element = &boundary_key,
     .doc =
         "With boundaries, the samples of a batch of each bucket, one more than there are boundaries. Default: batch "
         "for each."},
    {.name = "to_boundary",
     .type = STK_KEY_BOOL,
     .standard = "false",
     .doc = "With boundaries, whether rows are as long as the boundary - 1; then no sample may be longer."},
    {.name = "by", .type = STK_KEY_TEXT, .doc = "Whose length it is. Default: the only padded field."},
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &pad_field_key,
     .one_is_list = true,
     .doc = "Which fields these settings are for. Default: all whose first side is open; the others are filled up "
            "with 0 to the longest."},
    END};

static const char *const precision_words[] = {"auto", "f32", "bf16", "f16", NULL};
static const char *const step_words[] = {"steps", NULL};
static const stk_key no_decay_part = {.name = "no_decay", .type = STK_KEY_TEXT};
static const stk_key checkpoint_keys[] = {{.name = "every",
                                           .type = STK_KEY_EVERY,
                                           .standard = "1 epoch",
                                           .doc = "How often; the end of a run is always saved."},
                                          {.name = "keep",
                                           .type = STK_KEY_INT,
                                           .standard = "2",
                                           .least = 2,
                                           .most = 1e6,
                                           .doc = "How many of the last are kept."},
                                          {.name = "best",
                                           .type = STK_KEY_BOOL,
                                           .standard = "true",
                                           .doc = "Whether the one with the least validation loss is kept too."},
                                          END};
static const stk_key early_stopping_keys[] = {
    {.name = "patience",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .required = true,
     .doc = "Epochs without a better validation loss after which the run stops."},
    END};
static const stk_key log_keys[] = {{.name = "every",
                                    .type = STK_KEY_EVERY,
                                    .words = step_words,
                                    .standard = "10 steps",
                                    .doc = "Steps between the lines of metrics.jsonl."},
                                   END};

static const stk_key recipe_keys[] = {
    {.name = "name", .type = STK_KEY_TEXT, .doc = "Of the run's folder, runs/NAME. Default: the recipe's file name."},
    {.name = "data",
     .type = STK_KEY_MAP,
     .keys = data_keys,
     .required = true,
     .no_short = true,
     .doc = "Where samples come from and what is done to them."},
    {.name = "valid",
     .type = STK_KEY_SHARE,
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "Short for data.valid.share."},
    {.name = "batch", .type = STK_KEY_INT, .standard = "32", .least = 1, .most = 1e6, .doc = "Samples in a step."},
    {.name = "pad",
     .type = STK_KEY_MAP,
     .keys = pad_batch_keys,
     .doc = "Samples of different lengths are filled up, as tf.data's padded_batch; their lengths are the fields "
            "NAME.length. Training needs one length. Default: all samples have one shape."},
    {.name = "model", .type = STK_KEY_CHOICE, .keys = model_kinds, .doc = "The network; stoker data needs none."},
    {.name = "loss",
     .type = STK_KEY_CHOICE,
     .keys = loss_kinds,
     .standard = "cross_entropy",
     .doc = "What is made small."},
    {.name = "optimizer",
     .type = STK_KEY_CHOICE,
     .keys = optimizer_kinds,
     .standard = "adam",
     .doc = "How parameters are updated."},
    {.name = "schedule",
     .type = STK_KEY_CHOICE,
     .keys = schedule_kinds,
     .standard = "constant",
     .doc = "How the learning rate changes."},
    {.name = "epochs",
     .type = STK_KEY_INT,
     .standard = "10",
     .least = 1,
     .most = 1e9,
     .doc = "Passes over the training data."},
    {.name = "precision",
     .type = STK_KEY_WORD,
     .words = precision_words,
     .standard = "auto",
     .doc = "The element type of the computation; auto is f32 for now, and bf16 and f16 are not supported yet."},
    {.name = "memory",
     .type = STK_KEY_MEMORY,
     .standard = "auto",
     .doc = "What the run's plan may need; a plan that needs more is refused before the run. auto: what the machine "
            "has free."},
    {.name = "device",
     .type = STK_KEY_TEXT,
     .standard = "cpu",
     .doc = "Where to compute; 'stoker devices' lists them."},
    {.name = "seed", .type = STK_KEY_INT, .standard = "0", .least = 0, .most = 9e15, .doc = "Of every random choice."},
    {.name = "threads",
     .type = STK_KEY_INT,
     .standard = "0",
     .least = 0,
     .most = 4096,
     .doc = "For computing and for the data, each; 0: as many as cores."},
    {.name = "clip_norm",
     .type = STK_KEY_REAL,
     .least = 0,
     .above = true,
     .doc = "The most that the norm of all gradients together may be. Default: no limit."},
    {.name = "no_decay",
     .type = STK_KEY_LIST,
     .element = &no_decay_part,
     .doc = "Parts of parameters' names that get no weight decay: [bias, norm]. Default: none."},
    {.name = "checkpoint",
     .type = STK_KEY_MAP,
     .keys = checkpoint_keys,
     .standard = "",
     .doc = "When the run is saved."},
    {.name = "early_stopping", .type = STK_KEY_MAP, .keys = early_stopping_keys, .doc = "Needs valid. Default: never."},
    {.name = "log", .type = STK_KEY_MAP, .keys = log_keys, .standard = "", .doc = "What is written to metrics.jsonl."},
    END};

const stk_key stk_recipe_key = {.name = "", .type = STK_KEY_MAP, .keys = recipe_keys, .no_short = true};
