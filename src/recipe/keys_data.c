/* Keys of a recipe's data: order, errors, caches, data sets of data sets, the parts train, valid and test. */
#include "recipe/keys.h"

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
                                      .default_value = "data",
                                      .doc = "data: every count-th sample; file: the records of every count-th file, "
                                             "before skip and take, with at least one file for each; auto: by file "
                                             "where the source consists of files, else by data; off: all samples."},
                                     END};
static const stk_key shuffle_keys[] = {
    {.name = "on",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether at all; 'shuffle: true' is short for it."},
    {.name = "window",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .default_value = "0",
     .doc = "Shuffles as tf.data does with a buffer of N samples, so that records that lie together are read "
            "together; 0: everything is shuffled."},
    {.name = "reshuffle",
     .type = STK_KEY_BOOL,
     .default_value = "true",
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
     .default_value = "1",
     .doc = "Between the samples of a window."},
    {.name = "remainder",
     .type = STK_KEY_WORD,
     .words = remainder_words,
     .default_value = "drop",
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
     .default_value = "false",
     .doc = "Whether longer samples are cut; otherwise the first of them is an error."},
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What rows are filled up with."},
    END};
static const stk_key value_key = {.name = "value", .type = STK_KEY_TEXT};
static const stk_key filter_keys[] = {
    {.name = "field", .type = STK_KEY_TEXT, .default_value = "label", .doc = "What is looked at."},
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
     .element = &stk_stage_choice,                                                                                     \
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
         .doc = "Uses one of N shards only."},                                                                         \
    {                                                                                                                  \
        .name = "repeat", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                                \
        .doc = "How many passes make one epoch, each shuffled again."                                                  \
    }

static const char *const no_index_files[] = {"auto", "none", NULL};
#define PART_KEYS                                                                                                      \
    ORDER_KEYS,                                                                                                        \
        {.name = "index",                                                                                              \
         .type = STK_KEY_TEXT,                                                                                         \
         .is_path = true,                                                                                              \
         .words = no_index_files,                                                                                      \
         .doc = "Entry points of a folder's JPEG files, which make crops faster. auto: what is not known is learned "  \
                "in the first epoch and kept; none; or the path of an index. Default: the one that 'stoker index' "    \
                "or an earlier run has left there."},                                                                  \
        {.name = "cache",                                                                                              \
         .type = STK_KEY_MAP,                                                                                          \
         .may_change = true,                                                                                           \
         .keys = cache_keys,                                                                                           \
         .doc = "Keeps what the stages before the first random one make of each record: memory, disk, auto or none; "  \
                "see docs/pipelines.md. Default: none."},                                                              \
        {.name = "on_error",                                                                                           \
         .type = STK_KEY_MAP,                                                                                          \
         .may_change = true,                                                                                           \
         .keys = on_error_keys,                                                                                        \
         .doc = "What becomes of a record that is corrupt or has gone: fail, skip or replace, or {policy: "            \
                "skip, most: 100}. A disk or server that fails stops the run in any case. Default: fail."},            \
    {                                                                                                                  \
        .name = "remainder", .type = STK_KEY_WORD, .words = remainder_words,                                           \
        .doc = "The samples that do not fill the last batch. Default: drop for train, keep for valid and test."        \
    }

/* --- data sets of data sets --- */

static const stk_key new_name_key = {.name = "name", .type = STK_KEY_TEXT};
static const stk_key set_keys[] = {{.name = "source",
                                    .type = STK_KEY_CHOICE,
                                    .kinds = stk_source_kinds,
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
                                    .default_value = "1",
                                    .doc = "In a mix, how often it is drawn in proportion to the others."},
                                   END};
const stk_key stk_set_key = {
    .name = "data set",
    .type = STK_KEY_MAP,
    .keys = set_keys,
    .no_short = true,
    .doc =
        "One of those that are put together. Its order is made in the same sequence as a part's, and its stages come "
        "before those of the part. All have the same fields, but in a zip, where no two may have the same."};
#define SOURCE                                                                                                         \
    {                                                                                                                  \
        .name = "source", .type = STK_KEY_CHOICE, .kinds = stk_source_kinds, .required = true,                         \
        .doc = "Where the samples come from."                                                                          \
    }
#define ALPHA(text)                                                                                                    \
    {                                                                                                                  \
        .name = "alpha", .type = STK_KEY_REAL, .default_value = text, .least = 0, .most = 1000, .above = true,         \
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
static const char *const no_tokenizer_files[] = {"bytes", NULL};
static const stk_key masked_keys[] = {{.name = "tokenizer",
                                       .type = STK_KEY_TEXT,
                                       .is_path = true,
                                       .words = no_tokenizer_files,
                                       .required = true,
                                       .doc = "That of the tokens, which has a token [MASK] or <mask>."},
                                      {.name = "share",
                                       .type = STK_KEY_REAL,
                                       .default_value = "0.15",
                                       .least = 0,
                                       .most = 0.99,
                                       .above = true,
                                       .doc = "The share of the tokens that is to be guessed."},
                                      END};
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
    {.name = "masked",
     .type = STK_KEY_MAP,
     .keys = masked_keys,
     .doc =
         "Some tokens are hidden, in all parts, and targets tell what they were: for the loss masked_lm. 80 % become "
         "[MASK], 10 % any token, 10 % stay; special tokens are never chosen."},
    END};
static const stk_key test_keys[] = {SOURCE, PART_KEYS, END};
static const stk_key valid_keys[] = {
    {.name = "share",
     .type = STK_KEY_SHARE,
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "Cut from train by key, with the stages of test; instead of source. 'valid: 10%' is short for it."},
    {.name = "source", .type = STK_KEY_CHOICE, .kinds = stk_source_kinds, .doc = "Where the samples come from."},
    PART_KEYS,
    END};
const stk_key stk_data_keys[] = {
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
    {.name = "ca",
     .type = STK_KEY_TEXT,
     .is_path = true,
     .may_change = true,
     .doc = "A file of certificates (PEM) by which https addresses are checked, instead of the system's: of a private "
            "authority. Default: the file that CURL_CA_BUNDLE or SSL_CERT_FILE names, else the system's."},
    {.name = "memory",
     .type = STK_KEY_MEMORY,
     .may_change = true,
     .default_value = "auto",
     .doc =
         "The most that all buffers of the data's pipelines may take together, never exceeded: 512MiB, or 10% of the "
         "machine's. auto: in training what the plan leaves of memory, else a quarter of what is free, and what "
         "sources "
         "keep in memory."},
    END};
