/* Keys of the sources. */
#include "recipe/keys.h"

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
     .default_value = "[]",
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
     .default_value = "false",
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
     .default_value = "1024",
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
     .default_value = "auto",
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
    {.name = "record",
     .type = STK_KEY_WORD,
     .words = record_words,
     .default_value = "line",
     .doc = "What a sample is."},
    {.name = "by", .type = STK_KEY_WORD, .words = by_words, .doc = "The label is the name of the folder a file is in."},
    {.name = "skip",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 1e15,
     .doc = "The first lines of each file do not count."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .default_value = "false",
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
    {.name = "delimiter", .type = STK_KEY_TEXT, .default_value = ",", .doc = "One sign between cells, or tab."},
    {.name = "header",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether the first row of each file names the columns; otherwise they are 0, 1, ..."},
    {.name = "quotes",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc =
         "Whether cells may be quoted, as RFC 4180 says; false: a quote is a sign like others, as in most TSV files."},
    {.name = "missing", .type = STK_KEY_TEXT, .doc = "What stands for a missing cell besides the empty one, as NA."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether the files are read into memory at the start and not again; faster where rows are short."},
    END};
static const char *const volume_dtype_words[] = {"f32", "u8", "i32", NULL};
static const stk_key volume_keys[] = {
    PATHS("files",
          "Files and patterns: .nii, .nii.gz or .npy; sorted by name. Number i of one field belongs to number i of "
          "the others."),
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = volume_dtype_words,
     .default_value = "f32",
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
     .default_value = "random",
     .doc = "Where they lie: drawn anew in each epoch, in the middle, or side by side over the whole volume."},
    {.name = "per_volume",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 1e6,
     .doc = "Random windows of each volume in an epoch."},
    {.name = "orientation",
     .type = STK_KEY_WORD,
     .words = orientation_words,
     .default_value = "stored",
     .doc = "ras: NIfTI volumes are turned so that z, y, x go up, to the front and to the right."},
    END};
static const char *const short_words[] = {"fail", "leave_out", "repeat", NULL};
static const stk_key video_keys[] = {
    PATHS("files", "Video files; patterns stand for their matches by name."),
    {.name = "frames", .type = STK_KEY_INT, .least = 1, .most = 65536, .required = true, .doc = "Of a clip."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 65536,
     .doc = "From frame to frame of a clip: 2 takes every other one."},
    {.name = "clips",
     .type = STK_KEY_WORD,
     .words = window_words,
     .default_value = "random",
     .doc = "Where they start: drawn anew in each epoch, in the middle, or one after the other over the whole video."},
    {.name = "per_video",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "Clips of each video in an epoch. Default: 1 random one; of a grid, as many as cover the video, and with "
            "per_video so many at equal distances."},
    {.name = "size",
     .type = STK_KEY_LIST,
     .element = &window_side_key,
     .doc = "[height, width] that frames are scaled to. Default: as they are; then all videos have one size."},
    {.name = "short",
     .type = STK_KEY_WORD,
     .words = short_words,
     .default_value = "fail",
     .doc = "What becomes of videos shorter than a clip; repeat: their last frame is repeated."},
    {.name = "by", .type = STK_KEY_WORD, .words = by_words, .doc = "The label is the name of the folder a file is in."},
    {.name = "labels", .type = STK_KEY_TEXT, .doc = "A file of lines name<TAB or comma>label; instead of by."},
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
    {.name = "video",
     .type = STK_KEY_MAP,
     .keys = video_keys,
     .doc = "Clips of video files, the field clip [T,H,W,3]; decoded from the key frame before them."},
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
    {.name = "synthetic",
     .type = STK_KEY_MAP,
     .keys = stk_synthetic_keys,
     .no_short = true,
     .doc =
         "Random numbers, for measuring: without stages one batch is made and delivered again and again, at no cost."},
    {.name = "concatenate",
     .type = STK_KEY_MAP,
     .keys = stk_concatenate_keys,
     .doc = "Several data sets, one after the other: {concatenate: [{source: ...}, {source: ...}]}."},
    {.name = "zip",
     .type = STK_KEY_MAP,
     .keys = stk_zip_keys,
     .doc = "The fields of several data sets side by side, sample by sample; as long as the shortest."},
    {.name = "interleave",
     .type = STK_KEY_MAP,
     .keys = stk_interleave_keys,
     .doc = "A block of samples of each of several data sets in turn."},
    {.name = "mix",
     .type = STK_KEY_MAP,
     .keys = stk_mix_keys,
     .doc = "Samples of several data sets, drawn at random by their weights."},
    END};
