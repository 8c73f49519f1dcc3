/* Packs: many small image files as a few large shards that read faster, and that other readers still read.
 *
 * A pack is a folder with shard-00000.tar, shard-00001.tar, ... in WebDataset's naming (KEY.cls with the class number,
 * if there are labels, and KEY.jpg or KEY.png) or shard-00000.tfrecord, ... of tf.train.Example (image, key and, if
 * there are labels, label), and stoker-pack.json, which names classes, shards and their CRC-32. Next to a shard lie the
 * entry points of its JPEGs of 8 KiB and more (stoker/data/index.h). The bytes of the images are untouched unless the
 * options ask for more. A pack is taken wherever a folder of images is: stk_dataset_images, stk_dataset_files.
 * Threads: one at a time for each folder.
 */
#ifndef STOKER_DATA_PACK_H
#define STOKER_DATA_PACK_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_pack_progress {
    int64_t n_done, n_records; /* records, or for stk_pack_verify bytes */
    int64_t n_bytes;           /* in shards so far */
    int64_t n_resumed;         /* records that an earlier, broken off call had packed */
    int n_shards;
} stk_pack_progress;

typedef struct stk_pack_options {
    int64_t shard_bytes; /* about so large is a shard; 0: 256 MiB */
    bool tfrecord;       /* shards are TFRecord files, not tar */
    /* JPEGs that Stoker's own decoder does not take (progressive ones, say) become baseline, with the same pixels to
     * the bit and all their markers. */
    bool baseline;
    int64_t shorter; /* images whose shorter side is longer than that many pixels are made smaller; 0: none */
    int quality; /* 1 to 100: all become JPEGs of this quality; 0: only what is made smaller, with 90; PNG stays PNG,
                    WebP becomes JPEG */
    int index_every; /* entry points of JPEGs every N MCUs: stk_index_options.every */
    /* Called now and then; false stops: STK_INTERRUPTED. A later call goes on from the last whole shard. May be NULL.
     */
    bool (*on_progress)(void *user, const stk_pack_progress *progress);
    void (*on_bad)(void *user, const char *text); /* stk_pack_verify: what is wrong with a shard. May be NULL */
    void *user;
} stk_pack_options;

/* Packs a data set in the order of its first epoch. Its field "image" must be encoded (no stages); a field "label" is
 * packed where it is one whole number. Every shard is whole or absent, and stoker-pack.json comes last. options may be
 * NULL. STK_BUSY where the folder holds anything else, or another process writes a pack to it. */
STK_API stk_status stk_pack_write(const stk_dataset *dataset, const char *folder, const stk_pack_options *options,
                                  stk_pack_progress *result);
/* Reads every shard and compares size and CRC-32 with stoker-pack.json. STK_CORRUPT where one differs. */
STK_API stk_status stk_pack_verify(const char *folder, const stk_pack_options *options, stk_pack_progress *result);

#ifdef __cplusplus
}
#endif
#endif
