/* Learning entry points while records are read: the side index of a folder (source/entries.h) comes into being during
 * the first epoch, without reading anything twice. A worker that decodes a file whose entries are not known notes them
 * on its way, and the index keeps them: for later epochs at once, and in the folder's index file when it is complete,
 * now and then before, and when the source is closed. What an index file there knows is taken, what it has out of date
 * is learned again, and what another process has written by then stays in it.
 *
 * Threads: give and take may be called by many at once.
 */
#ifndef STK_DATA_SOURCE_MCU_INDEX_H
#define STK_DATA_SOURCE_MCU_INDEX_H

#include "data/source/entries.h"
#include "data/source/source.h"

typedef struct stk_mcu_index stk_mcu_index;

/* For the files of a source, one a record and named by class->name_record, all in folder. Borrows all three, until it
 * is closed. */
stk_status stk_mcu_index_open(const stk_source *source, const char *folder, const stk_entries *known,
                              stk_mcu_index **out);
/* Saves what is not saved yet. NULL: nothing. */
void stk_mcu_index_close(stk_mcu_index *mcu_index);

/* Sets the entries of a record that was read, or that they are wanted. */
void stk_mcu_index_give(stk_mcu_index *mcu_index, int64_t i_record, const char *path, stk_span encoded,
                        stk_file_times times, stk_jpeg_hint *hint);
/* Takes the entries that hint wants. learned: those that decoding came upon, with room for all; n 0: none. Best effort:
 * what cannot be learned is read without. */
void stk_mcu_index_take(const stk_jpeg_hint *hint, stk_span encoded, stk_jpeg_index *learned);

/* The entry points of a source's files. Starts zeroed. */
typedef struct stk_entry_points {
    char *folder;             /* owned; NULL: the files are not given as one folder */
    stk_entries known;        /* of an index file */
    stk_mcu_index *mcu_index; /* NULL: what is not known stays so */
} stk_entry_points;
/* An index that lies in its place, if there is one; note as stk_entries_find_own. */
stk_status stk_entry_points_open(const char *folder, stk_entry_points *points, char *note, size_t note_bytes);
void stk_entry_points_close(stk_entry_points *points);
/* In memory, with what it is still likely to learn and to write. */
size_t stk_entry_points_bytes(const stk_entry_points *points);
void stk_entry_points_give(const stk_entry_points *points, int64_t i_record, const char *path, stk_span encoded,
                           stk_file_times times, stk_jpeg_hint *hint);

/* How far it is; see stoker/data/index.h. */
struct stk_index_progress;
void stk_mcu_index_get_progress(stk_mcu_index *mcu_index, struct stk_index_progress *out);

#endif
