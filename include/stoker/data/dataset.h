/* Data sets: where samples come from, in which order, and what is done to each.
 *
 * A data set is a source, a chain of order operations and a chain of stages. Building one reads nothing but what the
 * source must know (the names in a folder, the header of an IDX file). Order is arithmetic: "which record is number n
 * of this epoch?" is a pure function of (seed, epoch, n). Work is a pure function of (record, key). So the batches
 * are the same for any number of threads, and a position is a few integers.
 *
 * Builders keep their first error and make later calls no-ops: check stk_dataset_status once, at the end.
 * Threads: one at a time while building; a built data set is read-only and may be opened by many loaders.
 */
#ifndef STOKER_DATA_DATASET_H
#define STOKER_DATA_DATASET_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_dataset stk_dataset;
typedef struct stk_stage stk_stage;

/* --- sources; each returns a new data set, never NULL (out of memory is an error like any other) --- */

/* One sub-folder a class, classes sorted by name; JPEG, PNG and WebP files, sorted. Fields: "image" (encoded), "label"
 * i32
 * []. */
STK_API stk_dataset *stk_dataset_images(const char *folder);
/* IDX files as MNIST comes, plain or .gz. Fields: "image" u8 [H,W,1], "label" i32 []. labels may be NULL. */
STK_API stk_dataset *stk_dataset_idx(const char *images, const char *labels);

/* Any source that reads files, as a recipe says it: "{tar: {files: [a.tar, b.tar]}}"; docs/recipe.md. Paths are taken
 * as they are. */
STK_API stk_dataset *stk_dataset_parse(const char *text);

/* One array of from_tensor_slices: n_samples x sample, row-major, borrowed as long as the data set lives. */
typedef struct stk_array_field {
    const char *name;
    stk_dtype dtype;
    stk_shape sample; /* shape of one sample */
    const void *data;
} stk_array_field;
STK_API stk_dataset *stk_dataset_arrays(int64_t n_samples, const stk_array_field *fields, int n_fields);

/* A sample made by a C function of its index. out[i] points at the place for field i, in the order given here.
 * Threads: called by several workers at once, with different indices. Return other than STK_OK to report a corrupt
 * record. `user` is borrowed as long as the data set lives; the data pointers in fields are not used. */
typedef stk_status (*stk_sample_fn)(void *user, int64_t i_sample, void *const *out);
STK_API stk_dataset *stk_dataset_function(int64_t n_samples, const stk_array_field *fields, int n_fields,
                                          stk_sample_fn fn, void *user);

/* Accepts NULL. What loaders and trainers still read goes with the last of them. */
STK_API void stk_dataset_free(stk_dataset *dataset);

/* --- order; applied in the order of the calls, as in tf.data --- */

/* A keyed permutation of everything before it, new for each epoch. The same seed gives the same order. */
STK_API void stk_dataset_shuffle(stk_dataset *dataset, uint64_t seed);
/* The first n / all but the first n. */
STK_API void stk_dataset_take(stk_dataset *dataset, int64_t n);
STK_API void stk_dataset_skip(stk_dataset *dataset, int64_t n);
/* n passes as one epoch; each pass is shuffled again by a shuffle before it. */
STK_API void stk_dataset_repeat(stk_dataset *dataset, int64_t n);
/* Every n_shards-th sample from number i_shard on. */
STK_API void stk_dataset_shard(stk_dataset *dataset, int64_t n_shards, int64_t i_shard);
/* Splits by key: of every record, chance `share` to be kept (keep_rest: the others are). Records, not positions, are
 * drawn, so that two data sets over one source with the same seed are disjoint. Must come before other order calls. */
STK_API void stk_dataset_split(stk_dataset *dataset, double share, bool keep_rest, uint64_t seed);
/* Batches of n samples, last of all. drop_remainder: a short last batch is left out; otherwise it comes padded with
 * zeros, and stk_batch_count() tells how many rows are real. */
STK_API void stk_dataset_batch(stk_dataset *dataset, int64_t n, bool drop_remainder);

/* --- stages; each constructor returns a stage that stk_dataset_apply takes --- */

/* Applies stages to the field "image" in this order; takes them. End the list with NULL. */
STK_API void stk_dataset_apply(stk_dataset *dataset, ...) __attribute__((sentinel));
/* One stage, to the field of that name (NULL: "image", or "label" for one_hot). Takes stage. */
STK_API void stk_dataset_apply_to(stk_dataset *dataset, const char *field, stk_stage *stage);
/* Any stage, as a recipe says it: "decode", "{resize: {shorter: 256}}"; docs/recipe.md. Paths are taken as they are. */
STK_API stk_stage *stk_stage_parse(const char *text);
/* For a stage that is not used after all. Accepts NULL. */
STK_API void stk_stage_free(stk_stage *stage);

/* Encoded JPEG, PNG or WebP -> u8 [H,W,channels]; channels 1 (grey) or 3 (RGB); transparency is dropped. */
STK_API stk_stage *stk_decode(void);
STK_API stk_stage *stk_decode_channels(int channels);
/* exif: a JPEG is turned upright as its EXIF orientation says. */
STK_API stk_stage *stk_decode_with(int channels, bool exif);
/* Bilinear, half-pixel centres, to height x width. antialias: the filter widens when shrinking, as PIL does.
 * u8 stays u8 (rounded), f32 stays f32. */
STK_API stk_stage *stk_resize(int64_t height, int64_t width, bool antialias);
/* The shorter side becomes `side`, the longer in proportion. */
STK_API stk_stage *stk_resize_shorter(int64_t side, bool antialias);

typedef enum stk_filter { STK_FILTER_BILINEAR, STK_FILTER_BICUBIC, STK_FILTER_NEAREST } stk_filter;
/* Whose pixels resizing gives. PIL: u8 within 1, nearly all equal. TF: tf.image.resize, which gives f32 but for the
 * nearest (tf.io.decode_jpeg has another DCT by default than stk_decode: docs/augmentations.md). OPENCV: u8 within 1;
 * no antialiasing; another cubic, and the nearest by left edges. */
typedef enum stk_resize_like { STK_LIKE_PIL, STK_LIKE_TF, STK_LIKE_OPENCV } stk_resize_like;
typedef struct stk_resize_config {
    int64_t height, width; /* 0, 0: by shorter */
    int64_t shorter;
    stk_filter filter;
    stk_resize_like like;
    bool antialias; /* the filter widens when shrinking; the nearest never does */
} stk_resize_config;
/* Bilinear with antialiasing as PIL; the size is still to be set. */
STK_API stk_resize_config stk_resize_config_default(void);
STK_API stk_stage *stk_resize_with(const stk_resize_config *config);
STK_API stk_stage *stk_center_crop(int64_t height, int64_t width);
/* Pads `pad` pixels of zeros on each side, then cuts size x size at random. */
STK_API stk_stage *stk_random_crop(int64_t size, int64_t pad);
/* What is beyond the sides: zeros, or the image reflected at its outermost pixels, which are not repeated, as
 * torch.nn.functional.pad's "reflect"; then pad must be less than the sides. */
typedef enum stk_border { STK_BORDER_ZERO, STK_BORDER_REFLECT } stk_border;
STK_API stk_stage *stk_random_crop_with(int64_t size, int64_t pad, stk_border border);
/* Area 8-100 %, log-uniform ratio 3/4-4/3, ten tries, then a centre crop with the ratio clamped; then resized to
 * size x size. Szegedy et al. 2015, as in torchvision. */
STK_API stk_stage *stk_random_resized_crop(int64_t size, bool antialias);
STK_API stk_stage *stk_random_resized_crop_with(int64_t size, stk_filter filter, bool antialias);
/* Flips left-right with chance 1/2. */
STK_API stk_stage *stk_random_flip(void);
STK_API stk_stage *stk_random_flip_vertical(void);
/* alternate: the chance decides for the first epoch only, and from then on each image is flipped in every other epoch,
 * so that two epochs in a row show both sides of all images. Jordan 2024, section 3.6. */
STK_API stk_stage *stk_random_flip_with(bool vertical, bool alternate);

/* Augmentations as torchvision defines them. All but random erasing work on u8 images, those of colours on one channel
 * or three. */

/* Factors from 1 - strength (at least 0) to 1 + strength, hue turned by up to hue (0 to 0.5) either way; those of 0 are
 * left out. Their order is random. */
STK_API stk_stage *stk_color_jitter(double brightness, double contrast, double saturation, double hue);
/* Grey in all channels, with that chance. */
STK_API stk_stage *stk_random_grayscale(double chance);
/* kernel: odd, in pixels; sigma is uniform between the two. */
STK_API stk_stage *stk_gaussian_blur(int64_t kernel, double least_sigma, double most_sigma);

typedef struct stk_random_erasing_config {
    double chance;
    double scale[2]; /* share of the area */
    double ratio[2]; /* height to width */
    double value;    /* u8 images: 0 to 255 */
} stk_random_erasing_config;
/* chance 0.5, scale 0.02-0.33, ratio 0.3-3.3, value 0. */
STK_API stk_random_erasing_config stk_random_erasing_config_default(void);
/* A rectangle gets one value. u8 or f32. */
STK_API stk_stage *stk_random_erasing(const stk_random_erasing_config *config);

/* Turned counter-clockwise about the middle. filter: nearest or bilinear; fill: of what comes from outside, 0 to 255.
 */
STK_API stk_stage *stk_random_rotation(double from_degrees, double to_degrees, stk_filter filter, int fill);

typedef struct stk_random_affine_config {
    double degrees[2];             /* clockwise */
    double move_x, move_y;         /* at most, either way, as shares of the sides; whole pixels are drawn */
    double scale[2];               /* factor */
    double shear_x[2], shear_y[2]; /* degrees */
    stk_filter filter;             /* nearest or bilinear */
    int fill;                      /* of what comes from outside, 0 to 255 */
} stk_random_affine_config;
/* Changes nothing; scale 1 to 1, nearest. */
STK_API stk_random_affine_config stk_random_affine_config_default(void);
STK_API stk_stage *stk_random_affine(const stk_random_affine_config *config);
/* n operations out of 14; magnitude 0 to 30. Cubuk et al. 2020. */
STK_API stk_stage *stk_randaugment(int64_t n, int64_t magnitude);

/* A border of one value; u8 images: 0 to 255. Sides in pixels. */
STK_API stk_stage *stk_pad_image(int64_t top, int64_t left, int64_t bottom, int64_t right, double value);
/* Elements of u8 or f32 arrays are kept between low and high. */
STK_API stk_stage *stk_clip_values(double low, double high);
/* [H,W,C] -> [C,H,W]; the last stage. */
STK_API stk_stage *stk_layout_channels_first(void);
STK_API stk_stage *stk_cast(stk_dtype dtype);
/* x * factor, as f32. stk_scale(1 / 255.0). */
STK_API stk_stage *stk_scale(double factor);
/* (x / 255 - mean[c]) / std[c] for u8 input, (x - mean[c]) / std[c] for f32; gives f32. n_channels 1 to 4. */
STK_API stk_stage *stk_normalize(const float *mean, const float *std, int n_channels);
/* Named constants: "mnist", "cifar10", "imagenet". */
STK_API stk_stage *stk_normalize_named(const char *name);
STK_API stk_stage *stk_normalize_mnist(void);
STK_API stk_stage *stk_normalize_cifar10(void);
STK_API stk_stage *stk_normalize_imagenet(void);
/* i32 class number -> f32 [n_classes]. */
STK_API stk_stage *stk_one_hot(int64_t n_classes);

/* --- what was built --- */

/* What becomes of a record that is corrupt or has gone. A source that fails (STK_IO: a disk, a server) is no such
 * record and always stops the run. Which records those are depends on nothing but the data, so that any number of
 * threads gives the same batches, and resuming does. */
typedef enum stk_on_error {
    STK_ON_ERROR_STOP,   /* the run stops, naming the record */
    STK_ON_ERROR_SKIP,   /* its sample is left out: the batch is shorter, see stk_batch_count; counted and listed */
    STK_ON_ERROR_REPLACE /* another, drawn by key, takes its place, and batches are full; counted and listed */
} stk_on_error;
typedef struct stk_error_policy {
    stk_on_error what;
    int64_t most; /* of different records, from where a loader starts; one more stops it. 0: 1 %, but at least 100; -1:
                     any number */
} stk_error_policy;
STK_API void stk_dataset_on_error(stk_dataset *dataset, stk_on_error what);
STK_API void stk_dataset_on_error_with(stk_dataset *dataset, stk_error_policy policy);

/* The first error of any call above; its text is then stk_error_text(). */
STK_API stk_status stk_dataset_status(const stk_dataset *dataset);
/* Samples in an epoch after all order operations but batch; 0 after an error; -1 where it is not known (a generator
 * that does not say). */
STK_API int64_t stk_dataset_count(const stk_dataset *dataset);
/* Batches in an epoch; 0 before stk_dataset_batch; -1 where it is not known. */
STK_API int64_t stk_dataset_n_batches(const stk_dataset *dataset);
/* Rows in a batch; 0 before stk_dataset_batch. */
STK_API int64_t stk_dataset_batch_size(const stk_dataset *dataset);
/* Class names of an image folder, n_classes of them; 0 and NULL for other sources. Borrowed from the data set. */
STK_API int64_t stk_dataset_classes(const stk_dataset *dataset, const char *const **names);
/* Bytes of the source's records in memory (arrays; IDX files, unzipped). 0: not known. That is so for an image folder:
 * asking for every file's size takes several times as long as listing them. */
STK_API int64_t stk_dataset_source_bytes(const stk_dataset *dataset);

/* Checks the whole chain and gives the shape of one sample's field after all stages. Sides that vary are STK_ANY, or
 * taken from the first record where `probe` allows reading its header. A chain that does not fit is refused before any
 * file is read, naming the two stages. */
STK_API stk_status stk_dataset_field(const stk_dataset *dataset, const char *field, bool probe, stk_dtype *dtype,
                                     stk_shape *shape);

/* Runs the stages of the field "image" on one encoded file in memory, as for prediction: no order, key 0. dst must hold
 * the bytes of stk_dataset_field's shape. */
STK_API stk_status stk_dataset_transform(const stk_dataset *dataset, const void *encoded, size_t n_bytes, void *dst);

#ifdef __cplusplus
}
#endif
#endif
