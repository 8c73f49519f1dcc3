/* Side indexes of entry points of JPEG files: for each file of a folder, where its rows of MCUs start, so that a crop
 * need not parse what lies above it (data/codec/jpeg_crop.h). One file for a folder, DIR/.stoker-index, or in the cache
 * folder where DIR cannot be written to; stoker/data/index.h and mcu_index.h write it. What is said of a file counts
 * only while the file has the size, time and content that it had then. The content is the same while nothing about the
 * file has changed since (its ctime, which nobody can set); where something has, as in a copy, whoever uses the entries
 * has read all of the file, and hashes it, once for each process.
 *
 * Threads: any, once opened.
 */
#ifndef STK_DATA_SOURCE_ENTRIES_H
#define STK_DATA_SOURCE_ENTRIES_H

#include <stdatomic.h>

#include "base/file.h"
#include "data/codec/jpeg_crop.h"
#include "data/common/item.h"

#define STK_ENTRIES_NAME ".stoker-index"

/* What an index says of one file. */
typedef struct stk_entries_file {
    const char *name; /* below the folder */
    uint64_t n_bytes;
    stk_file_times times;
    uint64_t content; /* stk_content_hash of its bytes */
    const stk_jpeg_entry *entry;
    uint32_t n_entries; /* 0: a file that has none, as a progressive one */
} stk_entries_file;

typedef struct stk_entries {
    char *folder; /* owned; NULL: there is no index */
    size_t n_folder;
    uint8_t *bytes;      /* of the index file, owned */
    size_t memory_bytes; /* of those and of entry */
    int64_t n_files;
    const uint8_t *table;
    const char *names;
    stk_jpeg_entry *entry; /* owned, all files' */
    atomic_llong *fits; /* owned; for each file the ctime with which its content is that of the index; 0: not known */
} stk_entries;

/* The two places of a folder's index: in it, and in the cache folder; "" where there is none. */
enum { STK_ENTRIES_PATH = 4096 };
void stk_entries_places(const char *folder, char places[2][STK_ENTRIES_PATH]);

/* Checks an index file's bytes in full; *out then borrows them, and has entries of its own. STK_CORRUPT. Fuzzed. */
stk_status stk_entries_parse(stk_span bytes, stk_entries *out);
/* Reads the index of a folder. path NULL: one that lies in its places, none of which is no error. */
stk_status stk_entries_open(const char *folder, const char *path, stk_entries *out);
/* The same for a source: replaces what *entries holds; path NULL: by none. */
stk_status stk_entries_use(const char *folder, const char *path, stk_entries *entries);
/* One that lies in its place, if there is one that is whole; note says what is wrong with it: damaged, or out of date
 * for some of a few files that are looked at. */
stk_status stk_entries_find_own(const char *folder, stk_entries *entries, char *note, size_t note_bytes);
void stk_entries_close(stk_entries *entries); /* accepts one that is all zero */
/* In memory. */
size_t stk_entries_bytes(const stk_entries *entries);

/* File i of the index, by name. */
stk_entries_file stk_entries_get(const stk_entries *entries, int64_t i);
/* False: the file, given by its whole path, is not in the index. */
bool stk_entries_find(const stk_entries *entries, const char *path, stk_entries_file *out);
/* Sets the entries of a file that was read, where the index knows it in this state. */
void stk_entries_give(const stk_entries *entries, const char *path, stk_span encoded, stk_file_times times,
                      stk_jpeg_hint *hint);
/* The same of file i, whose time is not looked at. */
void stk_entries_give_at(const stk_entries *entries, int64_t i, stk_span encoded, int64_t ctime_ns,
                         stk_jpeg_hint *hint);
/* Whether what is known of a file, whose size and time fit, is of this content. */
bool stk_entries_fit(const stk_entries_file *file, stk_span encoded, int64_t ctime_ns);

/* --- writing: entries_write.c --- */

#define STK_ENTRIES_MAGIC "stkjpg2\n"
enum { STK_ENTRIES_KIND_BYTES = 6 }; /* of them, which older ones have, too */
enum { STK_ENTRIES_HEADER = 32, STK_ENTRIES_FILE = 48, STK_ENTRIES_ENTRY = 12, STK_ENTRIES_SUM = 8 }; /* bytes */

/* An index file of n files, sorted by name. *out is malloc'ed. */
stk_status stk_entries_print(const stk_entries_file *files, int64_t n, uint8_t **out, size_t *n_bytes);
/* The same, written whole and durably to the first of the folder's places that can be written to. path, n_bytes: where
 * it is then, and how large. */
stk_status stk_entries_save(const char *folder, const stk_entries_file *files, int64_t n, char path[STK_ENTRIES_PATH],
                            int64_t *n_bytes);

#endif
