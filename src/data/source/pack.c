/* A pack as a source: tar shards with the classes of the folder that they were made of. See stoker/pack.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/pack/manifest.h"
#include "data/remote/http.h"
#include "data/source/paths.h"
#include "data/source/records.h"

bool stk_is_pack(const char *folder)
{
    char path[4096];
    /* Of remote folders packs are the only ones that can be read: a server does not list its files. */
    if (stk_is_remote(folder)) return true;
    return stk_path_join(path, sizeof(path), folder, STK_PACK_MANIFEST) == STK_OK && stk_path_exists(path);
}

stk_status stk_source_open_pack(const char *folder, stk_source **out)
{
    stk_pack_manifest m;
    stk_names shards = {0};
    size_t capacity = 0;
    char path[4096];
    stk_status status;
    *out = NULL;
    STK_TRY(stk_pack_manifest_read(folder, STK_PACK_MANIFEST, &m));
    if (m.n_shards == 0) STK_TRY(stk_fail(STK_INVALID, "pack '%s' holds no shard", folder));
    for (int64_t i = 0; i < m.n_shards; i++) {
        STK_TRY(stk_path_join(path, sizeof(path), folder, m.shard[i].file));
        STK_TRY(stk_names_add(&shards, &capacity, path));
    }
    const stk_tar_field fields[] = {{"image", "jpg;png"}, {"label", "cls"}};
    STK_TRY(stk_source_open_tar((const char *const *)shards.name, (int)shards.n, fields, m.has_labels ? 2 : 1, out));
    if ((*out)->n_records != m.n_records) {
        status =
            stk_fail(STK_CORRUPT, "pack '%s' holds %lld records where '%s' says %lld; stoker pack --verify says more",
                     folder, (long long)(*out)->n_records, STK_PACK_MANIFEST, (long long)m.n_records);
        (*out)->class->close(*out);
        *out = NULL;
        goto done;
    }
    stk_tar_take_classes(*out, m.class_name, m.n_classes);
    m.class_name = NULL;
    m.n_classes = 0;
done:
    stk_names_free(&shards);
    stk_pack_manifest_free(&m);
    return status;
}
