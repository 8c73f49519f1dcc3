/* Sources beyond folders of images and IDX: lists of files, arrays of NumPy, TFRecord and tar shards.
 *
 * Each call returns a new data set, never NULL; an error stays inside for stk_dataset_status, as with the sources in
 * stoker/data/dataset.h. Texts and arrays given are borrowed until the call returns. Records are read when they are
 * needed, by several threads at once and in any order; a file that becomes shorter in use is an error of the record,
 * which names file, record and byte.
 */
#ifndef STOKER_DATA_SOURCES_H
#define STOKER_DATA_SOURCES_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- files --- */

typedef enum stk_labels {
    STK_LABELS_NONE,
    STK_LABELS_BY_FOLDER, /* the name of the folder a file lies in; classes sorted by name */
    STK_LABELS_FROM_FILE /* lines of name<TAB or comma>label; the longest end of a file's path counts: a/b.jpg, b.jpg */
} stk_labels;
/* JPEG, PNG and WebP files, sorted by name as tf.data's list_files(shuffle=False) does. A path is a file; a folder, of
 * which all images at any depth are taken; or a pattern ("photos/[a-f]*.jpg"). Fields: "image" (encoded), and with
 * labels "label" i32 []: whole numbers as they are, or else the number of the class among the sorted names.
 * labels_path: for STK_LABELS_FROM_FILE, else NULL. */
STK_API stk_dataset *stk_dataset_files(const char *const *paths, int n_paths, stk_labels labels,
                                       const char *labels_path);

/* --- NumPy --- */

/* One field out of one array: a sample is a row along the first axis. */
typedef struct stk_npy_field {
    const char *name; /* "image"; NULL where this is the only one: then every array of a .npz is a field under its own
                         name, and a .npy is "image" */
    const char *path; /* "x.npy", or "mnist.npz:x_train" for an array of a .npz file */
} stk_npy_field;
/* .npy and .npz files of NumPy, little-endian, C order; all arrays have equally many rows. Arrays up to 256 MiB, and
 * compressed ones, are read into memory; larger ones row by row. */
STK_API stk_dataset *stk_dataset_npy(const stk_npy_field *fields, int n_fields);

/* --- TFRecord --- */

/* One feature of a tf.train.Example becomes one field. What is in the record decides how it is read: an Int64List fills
 * integers and bool (each value within the range), a FloatList f32 and f64, and a BytesList of one string any type, as
 * raw little-endian elements: TensorFlow's parse_single_example with FixedLenFeature, and decode_raw. A key that is
 * missing, or has no list, takes the default_value; without one it is an error of the record. */
typedef struct stk_feature {
    const char *name; /* of the field, as "image" */
    const char *key;  /* in the Example, as "image/encoded"; NULL: the name */
    bool encoded; /* a BytesList of one JPEG, PNG or WebP file, for stk_decode; dtype, shape and default_value do not
                     count */
    stk_dtype dtype;
    stk_shape shape;           /* rank 0: one number */
    const void *default_value; /* elements for records without the key; NULL: it is needed */
} stk_feature;
/* Shards of tf.train.Example: paths or patterns ("train-*.tfrecord"; their matches by name), plain, GZIP or ZLIB, told
 * apart by their first bytes. Every CRC is checked. Where records begin is kept in NAME.stkidx, next to the file or in
 * the cache folder, and compressed files are unpacked once into the cache folder: $STOKER_CACHE, else
 * $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker. in_memory: the shards are read into memory when the data set is
 * made, and not again: faster where records are small; CRCs are still checked with each record. */
STK_API stk_dataset *stk_dataset_tfrecord(const char *const *paths, int n_paths, const stk_feature *features,
                                          int n_features, bool in_memory);

/* --- tar --- */

typedef struct stk_tar_field {
    const char *name;       /* of the field, as "image" */
    const char *extensions; /* "jpg;jpeg;png;webp": the first of them that a sample has */
} stk_tar_field;
/* Tar shards in WebDataset's naming: files that follow one another and share their path up to the first dot of the file
 * name are one sample, and what comes after that dot, in lower case, says what each is. jpg, jpeg, png and webp make
 * encoded fields; cls, cls2, index, inx, id and count make i32 [] out of a whole number as text; txt, text and json
 * make u8 [?] as they are; others cannot be put into a batch and are refused by name when asked for. n_fields 0:
 * "image" and "label" (jpg;jpeg;png;webp and cls), as far as the first sample has them. Paths, patterns and indexes as
 * for stk_dataset_tfrecord; .tar.gz is unpacked like it. */
STK_API stk_dataset *stk_dataset_tar(const char *const *paths, int n_paths, const stk_tar_field *fields, int n_fields);

/* --- what opening found --- */

/* A sentence about something that does no harm, as an index that was out of date and has been rebuilt; "" where there
 * is nothing to say. Borrowed from the data set. */
STK_API const char *stk_dataset_note(const stk_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
