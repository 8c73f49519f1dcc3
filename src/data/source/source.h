/* A source: which records exist, and how one is read. Internal interface.
 *
 * Threads: read and name are called by several workers at once.
 */
#ifndef STK_DATA_SOURCE_SOURCE_H
#define STK_DATA_SOURCE_SOURCE_H

#include "data/common/item.h"

enum { STK_MAX_FIELDS = 8 };

typedef struct stk_source_field {
    char name[32];
    stk_field_type type;
} stk_source_field;

typedef struct stk_source stk_source;

typedef struct stk_source_class {
    const char *name;
    /* Fills item[i] for every field i: data is borrowed from the source (arrays in memory), or lives in scratch[i]. */
    stk_status (*read)(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item);
    /* "'train/cat/7.jpg'" or "record 7 of 'train-images.gz'", for messages. */
    void (*name_record)(const stk_source *source, int64_t i_record, char *out, size_t out_bytes);
    void (*close)(stk_source *source);
    /* Optional: as read, but only of the fields whose bits are set, where leaving out the others saves reading files.
     */
    stk_status (*read_some)(const stk_source *source, int64_t i_record, unsigned fields, stk_scratch *scratch,
                            stk_item *item);
    /* Optional: a hint that this thread will read the record a few reads from now. Cheap, and never fails. */
    void (*prefetch)(const stk_source *source, int64_t i_record);
    /* Optional, for records that may take long to come: begins to bring one closer that will be read soon, and waits
     * for nothing. False: enough is on its way, ask again later. See data/loader/ahead.h. */
    bool (*fetch)(const stk_source *source, int64_t i_record);
    /* Optional, where several records lie in one file: which of n_files it is. */
    int64_t (*file_of)(const stk_source *source, int64_t i_record);
    /* Instead of read and name_record, where a record depends on the epoch, as in a source of whole data sets. *work is
     * the thread's own, NULL at first, and ends with free_work. Call them through data/source/reader.h. */
    stk_status (*read_keyed)(const stk_source *source, int64_t i_record, const stk_stage_key *key, void **work,
                             stk_item *item);
    void (*free_work)(const stk_source *source, void *work);
    /* Optional: the entry points of its JPEG files. */
    struct stk_entry_points *(*points)(stk_source *source);
    /* Optional: size and time of the file that a record is in, as they are now. False: not known. */
    bool (*stamp)(const stk_source *source, int64_t i_record, uint64_t *n_bytes, int64_t *stamp);
    /* Optional: what the source keeps in memory of its own, in bytes. */
    size_t (*held_bytes)(const stk_source *source);
    /* Optional, in place of it: the source brings entry points of its own, which are not to be used any more. */
    void (*drop_entries)(stk_source *source);
    void (*name_keyed)(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes);
    /* Optional, where records are parts of files: reads one of n_files to its end, which verifying does in place of
     * reading records. *n_bytes: of the file. */
    stk_status (*read_file)(const stk_source *source, int64_t i_file, void **work, int64_t *n_bytes);
    const char *(*path_of_file)(const stk_source *source, int64_t i_file); /* comes with read_file */
    /* Of a source of data sets: number i of them; NULL: there are no more. */
    const struct stk_dataset *(*child)(const stk_source *source, int i);
} stk_source_class;

/* Every source starts with this. */
struct stk_source {
    const stk_source_class *class;
    int64_t n_records;
    int64_t n_bytes; /* of all records in memory; 0: not known */
    /* Of records that are windows of their files: what the files hold, and what one record takes from them. 0: records
     * are as they lie there; -1: not known. */
    int64_t file_bytes, window_bytes;
    int n_fields;
    stk_source_field field[STK_MAX_FIELDS];
    const char *const *class_names; /* of an image folder; else NULL */
    int64_t n_classes;
    int64_t n_files; /* that the records lie in; each in its own where the class has no file_of; 0: not in files */
    bool is_far;     /* reading goes over a network */
    bool is_random;  /* records are made, not read, and one batch of them is as good as another: stoker/data/random.h */
    bool varies;     /* record i is not the same sample in every epoch */
    bool in_order;   /* records come one after the other, by data/source/generator.h instead of read */
    bool is_open;    /* n_records is more than will come; how many is known at the end */
    char note[256];  /* what opening found and does no harm; "": nothing */
};

stk_status stk_source_open_images(const char *folder, stk_source **out);
stk_status stk_source_open_idx(const char *images, const char *labels, stk_source **out);
stk_status stk_source_open_arrays(int64_t n_samples, const stk_array_field *fields, int n_fields, stk_source **out);
stk_status stk_source_open_function(int64_t n_samples, const stk_array_field *fields, int n_fields, stk_sample_fn fn,
                                    void *user, stk_source **out);

#endif
