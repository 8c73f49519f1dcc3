/* Windows of volumes. See stoker/data/volumes.h; volume_file.h reads one. Record i is a window of a volume; where it
 * lies is arithmetic for a grid, and drawn by key for random ones, once for all fields.
 */
#include "stoker/data/volumes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/source/keys.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/source_list.h"
#include "data/source/volume_file.h"

enum { RNG_STAGE = (1 << 20) + 1 /* no chain has that many stages */ };

typedef struct volumes_source {
    stk_source base;
    int64_t n_volumes;
    stk_volume_file *file[STK_MAX_FIELDS]; /* [n_volumes] of each field */
    int64_t *first;                        /* [n_volumes + 1]: the first record of each volume */
    int64_t window[3];
    stk_volume_windows windows;
    bool whole;
} volumes_source;

/* --- where windows lie --- */

static int64_t n_tiles(int64_t side, int64_t window)
{
    return (side + window - 1) / window;
}

static int64_t count_windows(const volumes_source *s, const int64_t side[3], int64_t n_random)
{
    if (s->whole || s->windows == STK_WINDOWS_MIDDLE) return 1;
    if (s->windows == STK_WINDOWS_RANDOM) return n_random;
    return n_tiles(side[0], s->window[0]) * n_tiles(side[1], s->window[1]) * n_tiles(side[2], s->window[2]);
}

static int64_t find_volume(const volumes_source *s, int64_t i_record)
{
    int64_t low = 0, high = s->n_volumes;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (s->first[middle] <= i_record)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void find_window(const volumes_source *s, int64_t i_volume, int64_t i_record, uint64_t seed, uint64_t epoch,
                        int64_t from[3], int64_t size[3])
{
    const int64_t *side = s->file[0][i_volume].side;
    int64_t i = i_record - s->first[i_volume];
    stk_rng rng = stk_rng_make(seed, epoch, (uint64_t)i_record, RNG_STAGE);
    for (int k = 2; k >= 0; k--) {
        size[k] = s->whole ? side[k] : s->window[k];
        int64_t room = side[k] - size[k];
        if (s->windows == STK_WINDOWS_RANDOM) {
            from[k] = stk_rng_below(&rng, (uint32_t)(room + 1));
        } else if (s->windows == STK_WINDOWS_MIDDLE || s->whole) {
            from[k] = room / 2;
        } else {
            int64_t n = n_tiles(side[k], size[k]), at = i % n * size[k];
            from[k] = at < room ? at : room;
            i /= n;
        }
    }
}

/* --- reading --- */

typedef struct reading {
    stk_scratch bytes, out[STK_MAX_FIELDS];
} reading;

static stk_status read_record(const stk_source *source, int64_t i_record, const stk_stage_key *key, void **work,
                              stk_item *item)
{
    const volumes_source *s = (const volumes_source *)source;
    if (!*work) *work = calloc(1, sizeof(reading));
    reading *r = *work;
    int64_t i_volume = find_volume(s, i_record), from[3], size[3];
    if (!r) return stk_fail_memory(sizeof(*r));
    find_window(s, i_volume, i_record, key->seed, key->epoch, from, size);
    for (int f = 0; f < source->n_fields; f++) {
        const stk_volume_file *file = &s->file[f][i_volume];
        stk_field_type type = source->field[f].type;
        type.desc.shape = STK_SHAPE(size[0], size[1], size[2], file->n_channels);
        size_t n = stk_desc_bytes(type.desc);
        void *dst = stk_scratch_get(&r->out[f], n);
        if (!dst) return STK_NO_MEMORY;
        stk_status status = stk_volume_read(file, from, size, type.desc.dtype, &r->bytes, dst);
        if (status != STK_OK)
            return stk_fail_prefix(status, "field '%s' from '%s': ", source->field[f].name, file->path);
        item[f] = (stk_item){type, dst, n};
    }
    return STK_OK;
}

static stk_status read_file(const stk_source *source, int64_t i_file, void **work, int64_t *n_bytes)
{
    const volumes_source *s = (const volumes_source *)source;
    if (!*work) *work = calloc(1, sizeof(reading));
    reading *r = *work;
    if (!r) return stk_fail_memory(sizeof(*r));
    *n_bytes = 0;
    for (int f = 0; f < source->n_fields; f++) {
        const stk_volume_file *file = &s->file[f][i_file];
        const int64_t slice[3] = {1, file->side[1], file->side[2]};
        int64_t n = slice[1] * slice[2] * file->n_channels;
        void *dst = stk_scratch_get(&r->out[f], (size_t)n * sizeof(float));
        if (!dst) return STK_NO_MEMORY;
        for (int64_t z = 0; z < file->side[0]; z++) {
            const int64_t from[3] = {z, 0, 0};
            stk_status status = stk_volume_read(file, from, slice, STK_F32, &r->bytes, dst);
            if (status != STK_OK) return stk_fail_prefix(status, "field '%s': ", source->field[f].name);
            *n_bytes += n * (int64_t)stk_number_bytes(file->number);
        }
    }
    return STK_OK;
}

static const char *path_of_file(const stk_source *source, int64_t i_file)
{
    return ((const volumes_source *)source)->file[0][i_file].path;
}

static void free_work(const stk_source *source, void *work)
{
    reading *r = work;
    stk_scratch_free(&r->bytes);
    for (int f = 0; f < source->n_fields; f++)
        stk_scratch_free(&r->out[f]);
    free(r);
}

static void name_record(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes)
{
    const volumes_source *s = (const volumes_source *)source;
    int64_t i_volume = find_volume(s, i_record);
    (void)epoch;
    snprintf(out, out_bytes, "'%s', window %" PRId64, s->file[0][i_volume].path, i_record - s->first[i_volume]);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    return find_volume((const volumes_source *)source, i_record);
}

static void close_source(stk_source *source)
{
    volumes_source *s = (volumes_source *)source;
    for (int f = 0; f < STK_MAX_FIELDS; f++) {
        for (int64_t i = 0; s->file[f] && i < s->n_volumes; i++)
            stk_volume_close(&s->file[f][i]);
        free(s->file[f]);
    }
    free(s->first);
    free(s);
}

static const stk_source_class class_volumes = {.name = "volumes",
                                               .read_keyed = read_record,
                                               .free_work = free_work,
                                               .name_keyed = name_record,
                                               .file_of = file_of,
                                               .read_file = read_file,
                                               .path_of_file = path_of_file,
                                               .close = close_source};

/* --- opening --- */

static stk_status open_field(volumes_source *s, int f, const stk_volume_field *given, bool canonical)
{
    stk_names names = {0};
    stk_status status;
    if (given->n_paths < 1 || !given->paths)
        return stk_fail(STK_INVALID, "field '%s' has no files", s->base.field[f].name);
    STK_RETURN_IF_ERROR(stk_paths_expand(given->paths, given->n_paths, true, &names));
    if (f == 0) s->n_volumes = (int64_t)names.n;
    if ((int64_t)names.n != s->n_volumes)
        STK_TRY(stk_fail(STK_INVALID, "field '%s' has %zu files, '%s' has %" PRId64 ": they belong together in order",
                         s->base.field[f].name, names.n, s->base.field[0].name, s->n_volumes));
    s->file[f] = calloc(names.n + 1, sizeof(stk_volume_file));
    if (!s->file[f]) STK_TRY(stk_fail_memory(names.n * sizeof(stk_volume_file)));
    for (int64_t i = 0; i < s->n_volumes; i++)
        STK_TRY(stk_volume_open(names.name[i], canonical, &s->file[f][i]));
done:
    stk_names_free(&names);
    return status;
}

static stk_status check_volume(const volumes_source *s, int64_t i)
{
    const stk_volume_file *a = &s->file[0][i];
    for (int k = 0; k < 3 && !s->whole; k++)
        if (a->side[k] < s->window[k])
            return stk_fail(STK_INVALID,
                            "'%s' is %" PRId64 " x %" PRId64 " x %" PRId64 ", the window %" PRId64 " x %" PRId64
                            " x %" PRId64 ": make the window smaller",
                            a->path, a->side[0], a->side[1], a->side[2], s->window[0], s->window[1], s->window[2]);
    for (int f = 1; f < s->base.n_fields; f++)
        if (memcmp(a->side, s->file[f][i].side, sizeof(a->side)) != 0)
            return stk_fail(STK_INVALID, "'%s' and '%s' belong together and differ in their sides", a->path,
                            s->file[f][i].path);
    return STK_OK;
}

/* The type of a field: sides that differ among the volumes are open. */
static stk_status set_type(volumes_source *s, int f, stk_dtype dtype)
{
    stk_shape shape = STK_SHAPE(s->window[0], s->window[1], s->window[2], s->file[f][0].n_channels);
    for (int64_t i = 0; i < s->n_volumes; i++) {
        const stk_volume_file *v = &s->file[f][i];
        if (v->n_channels != shape.dim[3])
            return stk_fail(STK_INVALID, "'%s' has %" PRId64 " channels, '%s' has %" PRId64, v->path, v->n_channels,
                            s->file[f][0].path, shape.dim[3]);
        for (int k = 0; k < 3 && s->whole; k++)
            shape.dim[k] = i == 0 || shape.dim[k] == v->side[k] ? v->side[k] : STK_ANY;
    }
    s->base.field[f].type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(dtype, shape)};
    return stk_desc_check(s->base.field[f].type.desc);
}

static stk_status name_field(volumes_source *s, int f, const stk_volume_field *given)
{
    stk_source_field *field = &s->base.field[f];
    if (!given->name || !given->name[0] || strlen(given->name) >= sizeof(field->name))
        return stk_fail(STK_INVALID, "field %d needs a name of 1 to %zu characters", f, sizeof(field->name) - 1);
    for (int k = 0; k < f; k++)
        if (!strcmp(s->base.field[k].name, given->name))
            return stk_fail(STK_INVALID, "two fields are named '%s'", given->name);
    if (given->dtype != STK_F32 && given->dtype != STK_U8 && given->dtype != STK_I32)
        return stk_fail(STK_INVALID, "field '%s' can be f32, u8 or i32", given->name);
    snprintf(field->name, sizeof(field->name), "%s", given->name);
    return STK_OK;
}

static stk_status check_config(const stk_volumes_config *c, bool *whole)
{
    if (!c || c->n_fields < 1 || c->n_fields > STK_MAX_FIELDS || !c->fields)
        return stk_fail(STK_INVALID, "volumes need 1 to %d fields", STK_MAX_FIELDS);
    *whole = c->window[0] == 0 && c->window[1] == 0 && c->window[2] == 0;
    for (int k = 0; k < 3 && !*whole; k++)
        if (c->window[k] < 1 || c->window[k] > INT32_MAX)
            return stk_fail(STK_INVALID, "a window cannot be %" PRId64 " x %" PRId64 " x %" PRId64, c->window[0],
                            c->window[1], c->window[2]);
    if ((unsigned)c->windows > STK_WINDOWS_GRID) return stk_fail(STK_INVALID, "there are no windows of that kind");
    if (c->n_windows < 0 || c->n_windows > INT32_MAX) return stk_fail(STK_INVALID, "too many windows of a volume");
    return STK_OK;
}

stk_status stk_source_open_volumes(const stk_volumes_config *c, stk_source **out)
{
    bool whole = false;
    stk_status status;
    STK_RETURN_IF_ERROR(check_config(c, &whole));
    volumes_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base = (stk_source){
        .class = &class_volumes, .n_fields = c->n_fields, .file_bytes = -1, .window_bytes = -1}; /* they are decoded */
    s->whole = whole;
    s->windows = whole ? STK_WINDOWS_MIDDLE : c->windows;
    memcpy(s->window, c->window, sizeof(s->window));
    for (int f = 0; f < c->n_fields; f++) {
        STK_TRY(name_field(s, f, &c->fields[f]));
        STK_TRY(open_field(s, f, &c->fields[f], c->canonical));
        STK_TRY(set_type(s, f, c->fields[f].dtype));
    }
    if (!(s->first = calloc((size_t)s->n_volumes + 1, sizeof(*s->first))))
        STK_TRY(stk_fail_memory((size_t)s->n_volumes * sizeof(*s->first)));
    for (int64_t i = 0; i < s->n_volumes; i++) {
        STK_TRY(check_volume(s, i));
        s->first[i + 1] = s->first[i] + count_windows(s, s->file[0][i].side, c->n_windows ? c->n_windows : 1);
    }
    s->base.n_records = s->first[s->n_volumes];
    s->base.n_files = s->n_volumes;
    s->base.varies = s->windows == STK_WINDOWS_RANDOM;
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

stk_status stk_volume_get_info(const char *path, stk_volume_info *out)
{
    stk_volume_file file;
    if (!path) return stk_fail(STK_INVALID, "'path' is NULL");
    STK_NEED(out);
    STK_RETURN_IF_ERROR(stk_volume_open(path, false, &file));
    *out = (stk_volume_info){.shape = STK_SHAPE(file.side[0], file.side[1], file.side[2], file.n_channels),
                             .slope = file.slope,
                             .inter = file.inter};
    memcpy(out->affine, file.affine, sizeof(out->affine));
    stk_volume_close(&file);
    return STK_OK;
}

/* --- settings --- */

static const char *const dtype_words[] = {"f32", "u8", "i32", NULL};
static const stk_key volume_keys[] = {
    STK_SOURCE_PATHS(
        "files",
        "Files and patterns: .nii, .nii.gz or .npy; sorted by name. Number i of one field belongs to number i of "
        "the others."),
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = dtype_words,
     .default_value = "f32",
     .doc = "f32: scaled as the file says; u8 or i32: of labels, which must be whole numbers."},
    STK_KEY_END};
static const stk_key volume_key = {
    .name = "field", .type = STK_KEY_MAP, .keys = volume_keys, .doc = "One field's files."};
static const char *const window_words[] = {
    [STK_WINDOWS_RANDOM] = "random", [STK_WINDOWS_MIDDLE] = "middle", [STK_WINDOWS_GRID] = "grid", NULL};
static const char *const orientation_words[] = {"stored", "ras", NULL};
static const stk_key keys[] = {
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &volume_key,
     .alone = "image",
     .required = true,
     .doc = "{image: scans/*.nii.gz, mask: {files: labels/*.nii.gz, dtype: u8}}."},
    {.name = "window",
     .type = STK_KEY_LIST,
     .element = &stk_source_side_key,
     .doc = "Its sides, [z, y, x]. Default: whole volumes."},
    {.name = "windows",
     .type = STK_KEY_WORD,
     .words = window_words,
     .default_value = "random",
     .doc = "Where they lie: drawn again in each epoch, in the middle, or side by side over the whole volume."},
    {.name = "per_volume",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 1e6,
     .doc = "Random windows of each volume in an epoch."},
    {.name = "orientation",
     .type = STK_KEY_WORD,
     .words = orientation_words,
     .default_value = "stored",
     .doc = "ras: NIfTI volumes are turned so that z, y, x go up, to the front and to the right."},
    STK_KEY_END};

static stk_status read_window(const stk_yaml_node *settings, int64_t out[3])
{
    const stk_yaml_node *window = stk_yaml_get(settings, "window");
    int n = 0;
    if (!window) return STK_OK;
    if (window->n_children != 3) return stk_yaml_fail(window, "a window has three sides: [z, y, x]");
    for (const stk_yaml_node *side = window->child; side; side = side->next)
        out[n++] = side->integer;
    return STK_OK;
}

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const stk_yaml_node *named = stk_yaml_get(settings, "fields");
    stk_volume_field fields[STK_SOURCE_MOST_NAMES];
    const char **paths[STK_SOURCE_MOST_NAMES] = {NULL};
    stk_volumes_config config = {.fields = fields,
                                 .windows = (stk_volume_windows)stk_yaml_word(settings, "windows", window_words),
                                 .n_windows = stk_yaml_get(settings, "per_volume")->integer,
                                 .canonical = stk_yaml_is(settings, "orientation", "ras")};
    stk_status status;
    if (named->n_children > STK_SOURCE_MOST_NAMES)
        return stk_yaml_fail(named, "more than %d fields", STK_SOURCE_MOST_NAMES);
    STK_TRY(read_window(settings, config.window));
    for (const stk_yaml_node *field = named->child; field; field = field->next) {
        stk_volume_field *f = &fields[config.n_fields];
        *f = (stk_volume_field){.name = field->key};
        stk_dtype_from_name(stk_yaml_get(field, "dtype")->text, &f->dtype);
        STK_TRY(stk_yaml_texts(stk_yaml_get(field, "files"), &paths[config.n_fields], &f->n_paths));
        f->paths = paths[config.n_fields++];
    }
    STK_TRY(stk_yaml_locate(settings, stk_source_open_volumes(&config, out)));
done:
    for (int i = 0; i < STK_SOURCE_MOST_NAMES; i++)
        free(paths[i]);
    return status;
}

const stk_source_kind stk_source_kind_volumes = {
    .key = {.name = "volumes",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "3-D arrays, one a file, NIfTI or NumPy; windows are read without the rest."},
    .open = open_settings};
