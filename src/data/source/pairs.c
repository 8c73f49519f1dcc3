/* Images that belong together by their names, one folder for each field. See stk_dataset_pairs in stoker/data/fields.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/source_list.h"
#include "stoker/data/fields.h"

typedef struct pairs_source {
    stk_source base;
    stk_names files[STK_MAX_FIELDS]; /* whole paths, partners at the same place */
} pairs_source;

/* --- reading --- */

static stk_status read_some(const stk_source *source, int64_t i_record, unsigned fields, stk_scratch *scratch,
                            stk_item *item)
{
    const pairs_source *s = (const pairs_source *)source;
    for (int f = 0; f < source->n_fields; f++) {
        size_t n;
        if (!(fields >> f & 1)) continue;
        STK_RETURN_IF_ERROR(stk_file_read_scratch(s->files[f].name[i_record], &scratch[f], &n));
        item[f] = (stk_item){source->field[f].type, scratch[f].data, n};
    }
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    return read_some(source, i_record, ~0u, scratch, item);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const pairs_source *s = (const pairs_source *)source;
    size_t used = 0;
    for (int f = 0; f < source->n_fields && used < out_bytes; f++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s'%s'", f ? " with " : "", s->files[f].name[i_record]);
}

static void close_source(stk_source *source)
{
    for (int f = 0; f < source->n_fields; f++)
        stk_names_free(&((pairs_source *)source)->files[f]);
    free(source);
}

static const stk_source_class class_pairs = {
    .name = "pairs", .read = read_record, .read_some = read_some, .name_record = name_record, .close = close_source};

/* --- finding partners --- */

/* What of a path counts: below the folder, without the ending. */
static const char *stem_of(const char *path, const char *folder, size_t *n)
{
    const char *name = path + strlen(folder);
    while (*name == '/')
        name++;
    *n = (size_t)(strrchr(name, '.') - name); /* each is an image by its ending */
    return name;
}

static int compare_stems(const char *a, const char *a_folder, const char *b, const char *b_folder)
{
    size_t n, m;
    const char *x = stem_of(a, a_folder, &n), *y = stem_of(b, b_folder, &m);
    int order = memcmp(x, y, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

static _Thread_local const char *sorted_folder; /* qsort passes nothing on */

static int compare_in_folder(const void *a, const void *b)
{
    return compare_stems(*(char *const *)a, sorted_folder, *(char *const *)b, sorted_folder);
}

static stk_status find_field(const char *folder, stk_names *out)
{
    if (!folder || !stk_path_is_dir(folder))
        return stk_fail(STK_NOT_FOUND, "there is no folder '%s'", folder ? folder : "");
    STK_RETURN_IF_ERROR(stk_folder_images(folder, out));
    sorted_folder = folder;
    qsort(out->name, out->n, sizeof(*out->name), compare_in_folder);
    for (size_t i = 1; i < out->n; i++)
        if (compare_stems(out->name[i - 1], folder, out->name[i], folder) == 0)
            return stk_fail(STK_INVALID, "'%s' and '%s' differ by their ending alone: which is it?", out->name[i - 1],
                            out->name[i]);
    return STK_OK;
}

static stk_status check_partners(const stk_names *a, const char *a_folder, const stk_names *b, const char *b_folder)
{
    for (size_t i = 0; i < a->n || i < b->n; i++) {
        int order = i >= b->n ? -1 : i >= a->n ? 1 : compare_stems(a->name[i], a_folder, b->name[i], b_folder);
        if (order == 0) continue;
        return stk_fail(STK_INVALID, "'%s' has no partner in '%s'", order < 0 ? a->name[i] : b->name[i],
                        order < 0 ? b_folder : a_folder);
    }
    return STK_OK;
}

stk_status stk_source_open_pairs(const char *const *names, const char *const *folders, int n_fields, stk_source **out)
{
    if (n_fields < 1 || n_fields > STK_MAX_FIELDS || !names || !folders)
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible", n_fields, STK_MAX_FIELDS);
    pairs_source *s = calloc(1, sizeof(*s));
    stk_status status = STK_OK;
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base = (stk_source){.class = &class_pairs, .n_fields = n_fields};
    for (int f = 0; f < n_fields; f++) {
        stk_source_field *field = &s->base.field[f];
        if (!names[f] || !names[f][0] || strlen(names[f]) >= sizeof(field->name))
            STK_TRY(stk_fail(STK_INVALID, "field %d needs a name of 1 to %zu characters", f, sizeof(field->name) - 1));
        for (int k = 0; k < f; k++)
            if (!strcmp(names[f], names[k])) STK_TRY(stk_fail(STK_INVALID, "two fields are named '%s'", names[f]));
        snprintf(field->name, sizeof(field->name), "%s", names[f]);
        field->type = (stk_field_type){.kind = STK_FIELD_ENCODED};
        STK_TRY(find_field(folders[f], &s->files[f]));
        if (f > 0) STK_TRY(check_partners(&s->files[0], folders[0], &s->files[f], folders[f]));
    }
    s->base.n_records = s->base.n_files = (int64_t)s->files[0].n;
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

/* --- settings --- */

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const char *names[STK_SOURCE_MOST_NAMES], *folders[STK_SOURCE_MOST_NAMES];
    int n = 0;
    STK_RETURN_IF_ERROR(stk_source_check_names(settings));
    for (const stk_yaml_node *child = settings->child; child; child = child->next, n++) {
        names[n] = child->key;
        folders[n] = child->text;
    }
    return stk_yaml_locate(settings, stk_source_open_pairs(names, folders, n, out));
}

const stk_source_kind stk_source_kind_pairs = {.key = {.name = "pairs",
                                                       .type = STK_KEY_NAMED,
                                                       .element = &stk_source_path_key,
                                                       .alone = "image",
                                                       .doc = "Images that belong together, a folder for each field: "
                                                              "{image: photos, mask: masks}. Partners have the same "
                                                              "path below their folders, but for the ending."},
                                               .open = open_settings};
