/* See data/dataset/scan_file.h. */
#include "data/dataset/scan_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/common/side_file.h"
#include "data/source/reader.h"

/* Of fewer records the answers are there as fast as from a file. */
enum { LEAST_RECORDS = 1000 };

uint64_t stk_scan_key_stages(const stk_dataset *dataset, int f, uint64_t key)
{
    const stk_chain *chain = &dataset->chain[f];
    key = stk_hash64(chain->field, strlen(chain->field), key);
    for (int i = 0; i < chain->n_stages; i++) {
        const stk_stage *stage = chain->stage[i];
        if (!stage->class->plain) return 0;
        key = stk_hash64(stage->class->key.name, strlen(stage->class->key.name), key);
        key = stk_hash64(stage->params, stage->class->params_bytes, key);
    }
    return key ? key : 1;
}

/* --- which file, and of what --- */

typedef struct record_state {
    uint64_t n_bytes, name;
    int64_t mtime_ns, i_record;
} record_state;

static bool find_state(const stk_source *source, int64_t i_record, record_state *out)
{
    char name[STK_RECORD_NAME_BYTES];
    *out = (record_state){.i_record = i_record};
    if (!source->class->stamp(source, i_record, &out->n_bytes, &out->mtime_ns)) return false;
    stk_source_name(source, i_record, 0, name, sizeof(name));
    out->name = stk_hash64(name, strlen(name), 0);
    return true;
}

void stk_scan_file_find(const stk_dataset *dataset, const stk_scan *scan, const uint32_t *list, int64_t n,
                        stk_scan_file *out)
{
    const stk_source *source = dataset->source;
    char folder[PATH_MAX];
    record_state record;
    uint64_t place = stk_hash64(source->class->name, strlen(source->class->name), scan->key);
    out->path[0] = 0;
    out->state = (uint64_t)n ^ (uint64_t)dataset->on_error;
    if (scan->key == 0 || n < LEAST_RECORDS || !source->class->stamp) return;
    for (int64_t i = 0; i < n; i++) {
        if (!find_state(source, list ? (int64_t)list[i] : i, &record)) return;
        if (i == 0) place = stk_hash64(&record.name, sizeof(record.name), place);
        out->state = stk_hash64(&record, sizeof(record), out->state);
    }
    if (stk_cache_folder(folder, sizeof(folder)) != STK_OK) return;
    int used = snprintf(out->path, sizeof(out->path), "%s/survey-%016llx", folder, (unsigned long long)place);
    if (used >= (int)sizeof(out->path)) out->path[0] = 0;
}

/* --- reading and writing --- */

bool stk_scan_file_read(const stk_scan_file *file, int32_t *answers, int64_t n, bool *stale)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n_bytes;
    *stale = false;
    if (!file->path[0] || !stk_path_exists(file->path)) return false;
    bool found = stk_file_read(file->path, &bytes, &capacity, &n_bytes) == STK_OK &&
                 stk_scan_parse((stk_span){bytes, n_bytes}, file->state, answers, n);
    free(bytes);
    *stale = !found;
    return found;
}

void stk_scan_file_write(const stk_scan_file *file, const int32_t *answers, int64_t n)
{
    size_t n_bytes = stk_scan_bytes(n);
    size_t n_there;
    uint8_t *p = file->path[0] && stk_keeps_data() ? malloc(n_bytes) : NULL;
    if (!p) return;
    stk_scan_print(file->state, answers, n, p);
    if (stk_dir_make_for(file->path, &n_there) == STK_OK) (void)stk_file_write_durably(file->path, p, n_bytes);
    free(p);
}
