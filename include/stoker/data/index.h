/* Side indexes of JPEG files: where each row of blocks starts, so that a crop need not parse what lies above it. The
 * files stay as they are, and so does every pixel.
 *
 * An index is one file, DIR/.stoker-index, or lies in the cache folder ($STOKER_CACHE, else $XDG_CACHE_HOME/stoker,
 * else $HOME/.cache/stoker) where DIR cannot be written to; it takes about 0.5 % of the files' size, unless asked for
 * more. stk_dataset_images and stk_dataset_files use one that lies there. A file that has another size, time or
 * content than it had then is read without. Threads: one call at a time for each folder; it has threads of its own.
 */
#ifndef STOKER_DATA_INDEX_H
#define STOKER_DATA_INDEX_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_index_progress {
    int64_t n_done, n_files;
    int64_t n_kept;    /* taken from an index that was there: their files have not changed */
    int64_t n_without; /* files that have no entry points: PNG, progressive or damaged ones */
    int64_t n_bytes;   /* of the index file; 0: not written yet */
    char path[4096];   /* of the index file; "": not written yet */
} stk_index_progress;

typedef struct stk_index_options {
    int n_threads; /* 0: as many as cores */
    /* 0: one entry point a row of blocks, 0.5 % of the files' size; else one every N MCUs too (8 or 16 pixels
     * each): 8 makes crops a tenth faster still, for about 4 %. Entries that are there
     * already are kept, unless they are of another density than is asked for here. */
    int every;
    /* That the files which are being read may take, and what is made of them; 0: a quarter of what is free, next to
     * what is made. */
    size_t memory_bytes;
    /* Called now and then by the calling thread; false stops: STK_INTERRUPTED. What is done by then is kept, and the
     * next call goes on from there. May be NULL. */
    bool (*on_progress)(void *user, const stk_index_progress *progress);
    void *user;
} stk_index_options;

/* Makes or renews the index of all JPEG files below a folder. The index file is replaced whole or not at all. options
 * and result may be NULL. STK_NO_MEMORY, which names the first: files are larger than the limit; the others are in it.
 */
STK_API stk_status stk_index_folder(const char *folder, const stk_index_options *options, stk_index_progress *result);

/* Which index a data set of images or files uses. path NULL: none; else this index file, which must be one of the
 * source's folder. Without this call: one that lies in its place, if there is one. */
STK_API void stk_dataset_index(stk_dataset *dataset, const char *path);

/* The index of the data set's folder comes into being while its records are read: after the first whole epoch it is
 * complete and written to its place. What is learned is used at once, written now and then and when the data set is
 * freed, and completed the next time; the samples are the same, bit for bit. An index that lies there is taken as far
 * as it fits the files, and completed. A data set of images or files in one folder, or a pack, which has its own; not
 * after loaders were opened. */
STK_API void stk_dataset_index_auto(stk_dataset *dataset);
/* How far that is: n_done of n_files are known. path is set once it has been written. False: none is being learned.
 * Threads: any. */
STK_API bool stk_dataset_index_progress(const stk_dataset *dataset, stk_index_progress *out);

#ifdef __cplusplus
}
#endif
#endif
