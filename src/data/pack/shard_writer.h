/* Writing the shards of a pack: tar in WebDataset's naming, or TFRecord of tf.train.Example. Each is written under a
 * temporary name, and gets its own when it is whole and on disk; next to it come its index and the entry points of its
 * JPEGs. Threads: one at a time. */
#ifndef STK_DATA_PACK_SHARD_WRITER_H
#define STK_DATA_PACK_SHARD_WRITER_H

#include "data/source/entries.h"
#include "data/source/manifest.h"
#include "stoker/data/pack.h"

typedef struct stk_shard_writer {
    const char *folder; /* borrowed */
    bool is_tfrecord;
    int fd; /* of the shard under way; -1: none */
    char path[4096];
    uint8_t *buffer;
    size_t n_buffer;
    int64_t n_bytes, n_records;
    uint32_t crc;
    stk_entries_file *file; /* [n_records] with names and entries of its own */
    int64_t room;
    bool has_entries; /* any of them */
} stk_shard_writer;

typedef struct stk_packed_record {
    const char *key; /* no dots; keys rise within a pack */
    stk_span image;
    const char *ending;    /* of the image: "jpg", "png", "webp" */
    const int32_t *label;  /* NULL: none */
    stk_jpeg_entry *entry; /* [n_entries], taken; NULL: none */
    int n_entries;
} stk_packed_record;

stk_status stk_shard_writer_init(stk_shard_writer *writer, const char *folder, bool is_tfrecord);
/* Opens a shard where none is under way. */
stk_status stk_shard_writer_add(stk_shard_writer *writer, const stk_packed_record *record);
/* Makes the shard under way number i_shard of the pack. *out is the caller's. */
stk_status stk_shard_writer_end(stk_shard_writer *writer, int64_t i_shard, stk_pack_shard *out);
/* What is not ended is lost. */
void stk_shard_writer_free(stk_shard_writer *writer);

#endif
