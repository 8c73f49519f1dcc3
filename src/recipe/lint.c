/* See stoker/data/lint.h. Each rule is a function that looks at one part and reports what it finds; rules about stages
 * are in lint_stages.c. */
#include "recipe/lint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/error.h"
#include "data/source/source_list.h"
#include "recipe/build.h"

enum { MOST_SAMPLES = 64, MOST_DECODED = 256 };

static const char *const part_names[STK_N_PARTS] = {"train", "valid", "test"};

/* --- reporting --- */

void stk_lint_report(stk_lint_part *p, const char *rule, const stk_yaml_node *node, const char *remedy,
                     const char *format, ...)
{
    char place[512], reason[512];
    va_list arguments;
    int line = node->key_line ? node->key_line : node->line, column = node->key_line ? node->key_column : node->column;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (line)
        snprintf(place, sizeof(place), "%s:%d:%d", node->origin, line, column);
    else
        snprintf(place, sizeof(place), "%s", node->origin);
    stk_lint_finding finding = {
        .rule = rule, .part = part_names[p->i_part], .place = place, .line = line, .reason = reason, .remedy = remedy};
    (*p->n_found)++;
    if (p->on_finding) p->on_finding(p->user, &finding);
}

/* The key of the part, or the part itself where it is not there. */
static const stk_yaml_node *key_of(const stk_lint_part *p, const char *key)
{
    const stk_yaml_node *node = stk_yaml_get(p->part->node, key);
    return node ? node : p->part->node;
}

/* --- order --- */

/* Whether all samples of a class stand together. */
static bool is_by_class(const stk_lint_part *p)
{
    const stk_yaml_node *source = p->part->source;
    if (!source || p->dataset->source->n_classes < 2) return false;
    const stk_source_kind *kind = stk_source_kind_find(source->key);
    return kind && kind->is_by_class && kind->is_by_class(source);
}

static void check_shuffle(stk_lint_part *p)
{
    if (p->i_part != STK_PART_TRAIN) return;
    if (!p->part->shuffle) {
        if (!p->dataset->source->varies)
            stk_lint_report(p, "no-shuffle", p->part->node, "add 'shuffle: true'",
                            "the samples come in the same order in every epoch%s",
                            is_by_class(p) ? ", one class after the other" : "");
        return;
    }
    int64_t window = p->part->window, n = p->dataset->source->n_records;
    if (window > 0 && is_by_class(p) && window < n / 2)
        stk_lint_report(p, "small-window", key_of(p, "shuffle"), "shuffle without a window: it costs no memory",
                        "a window of %" PRId64 " in %" PRId64 " samples that are sorted by class mixes only neighbours",
                        window, n);
}

static void check_take(stk_lint_part *p)
{
    if (p->part->take < 0 || !is_by_class(p) || p->part->take >= p->dataset->source->n_records) return;
    stk_lint_report(p, "take-sorted", key_of(p, "take"),
                    "take a part by key with 'valid: share', or by 'shard: {count, index}'",
                    "'take' comes before the shuffle, and the samples are sorted by class: the first %" PRId64
                    " of %" PRId64 " lack some of the %" PRId64 " classes, or have them in other shares",
                    p->part->take, p->dataset->source->n_records, p->dataset->source->n_classes);
}

static void check_batches(stk_lint_part *p, int64_t batch)
{
    int64_t count = stk_dataset_count(p->dataset), rest = count % batch;
    if (p->i_part != STK_PART_TRAIN || !p->part->drop_remainder || rest * 10 <= count) return;
    stk_lint_report(p, "dropped", p->part->node, "make 'batch' smaller, or add 'repeat'",
                    "%" PRId64 " of %" PRId64 " samples of each epoch are left out, as they fill no batch of %" PRId64,
                    rest, count, batch);
}

static void check_shards(stk_lint_part *p)
{
    int64_t n_files = p->dataset->source->n_files, n = p->part->n_shards;
    bool by_file = p->part->shard_policy == STK_SHARD_FILE || p->part->shard_policy == STK_SHARD_AUTO;
    if (n < 2 || !by_file || n_files == 0 || n_files % n == 0 || n_files >= 20 * n) return;
    stk_lint_report(p, "file-shards", key_of(p, "shard"),
                    "'policy: data', or as many files as a multiple of the shards",
                    "%" PRId64 " files do not divide among %" PRId64
                    " shards: some have up to %.0f %% more samples, and the others wait for them",
                    n_files, n, 100.0 / (double)(n_files / n ? n_files / n : 1));
}

/* --- source --- */

/* The name of the file system where it is one over a network; NULL for others. */
static const char *network_name(const char *path)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {{0x6969, "NFS"},      {0x517B, "SMB"},        {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB2"},
                 {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}, {0x01021997, "9P"},
                 {0x65735546, "FUSE"}, {0x19830326, "BeeGFS"}};
    struct statfs info;
    if (statfs(path, &info) != 0) return NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].magic == ((unsigned long)info.f_type & 0xFFFFFFFF)) return known[i].name;
    return NULL;
}

static void check_storage(stk_lint_part *p)
{
    const stk_source *source = p->dataset->source;
    char name[STK_RECORD_NAME_BYTES];
    if (source->n_files != source->n_records || source->n_files < 1000 || p->sample.record_bytes > 1 << 20) return;
    stk_source_name(source, 0, 0, name, sizeof(name));
    size_t n = strlen(name);
    if (n < 3 || name[0] != '\'') return;
    name[n - 1] = 0;
    const char *network = network_name(name + 1);
    if (network)
        stk_lint_report(p, "network-files", p->part->source ? p->part->source : p->part->node,
                        "make a pack of them once: stoker pack FOLDER --out DIR",
                        "%" PRId64
                        " small files (%.0f KiB each) lie on network storage (%s): each is opened over the net",
                        source->n_files, p->sample.record_bytes / 1024, network);
}

static void check_target(stk_lint_part *p, const stk_recipe *recipe)
{
    if (!recipe->model) return;
    const char *field = stk_build_target(recipe, p->dataset);
    stk_tensor_desc desc;
    if (stk_dataset_field(p->dataset, field, false, &desc.dtype, &desc.shape) == STK_OK) return;
    stk_lint_report(
        p, "no-label", p->part->source ? p->part->source : p->part->node,
        !strcmp(field, "label") ? "say where labels come from, as 'by: folder' or 'labels: FILE' do for files"
                                : "a source that has it, or another field as the loss's 'target'",
        "source '%s' has no field '%s', and the model is to learn it", p->dataset->source->class->name, field);
}

static stk_status check_errors(stk_lint_part *p)
{
    stk_record_sample s;
    if (p->part->on_error.what == STK_ON_ERROR_STOP || p->dataset->source->class->read_keyed) return STK_OK;
    STK_RETURN_IF_ERROR(stk_sample_records(p->dataset, MOST_DECODED, true, &s));
    if (s.n_corrupt * 100 <= s.n) return STK_OK;
    stk_lint_report(p, "many-skipped", key_of(p, "on_error"),
                    "list them with 'stoker data verify', and mend or remove them",
                    "'on_error' hides many: %" PRId64 " of %" PRId64 " records looked at are corrupt, as %s",
                    s.n_corrupt, s.n, s.corrupt);
    return STK_OK;
}

/* --- parts --- */

static stk_status lint_part(const stk_recipe *recipe, stk_lint_part *p)
{
    stk_dataset *dataset = NULL;
    stk_status status;
    STK_TRY(stk_build_dataset(recipe, p->i_part, &dataset));
    p->dataset = dataset;
    STK_TRY(stk_sample_records(dataset, MOST_SAMPLES, false, &p->sample));
    check_shuffle(p);
    check_take(p);
    check_batches(p, recipe->batch);
    check_shards(p);
    check_storage(p);
    check_target(p, recipe);
    stk_lint_stages(p);
    STK_TRY(check_errors(p));
done:
    stk_dataset_free(dataset);
    return status;
}

/* As they are built: validation without stages of its own has those of the test, or of training. */
static const stk_yaml_node *find_stages(const stk_recipe *recipe, int i_part)
{
    const stk_recipe_part *part = recipe->part;
    if (part[i_part].stages || i_part != STK_PART_VALID) return part[i_part].stages;
    return part[STK_PART_TEST].node ? part[STK_PART_TEST].stages : part[STK_PART_TRAIN].stages;
}

stk_status stk_recipe_lint(const char *path, const char *const *set, int n_set, const char *part,
                           stk_lint_fn on_finding, void *user, int *n_found)
{
    stk_recipe *recipe;
    stk_status status;
    int n = 0;
    bool is_known = !part;
    for (int i = 0; i < STK_N_PARTS; i++)
        is_known = is_known || !strcmp(part, part_names[i]);
    if (!is_known) return stk_fail(STK_INVALID, "a part is train, valid or test, not '%s'", part);
    STK_RETURN_IF_ERROR(stk_recipe_read(path, set, n_set, &recipe));
    STK_TRY(stk_recipe_find_data(recipe));
    for (int i = 0; i < STK_N_PARTS; i++) {
        stk_lint_part p = {.i_part = i,
                           .part = &recipe->part[i],
                           .stages = find_stages(recipe, i),
                           .on_finding = on_finding,
                           .user = user,
                           .n_found = &n};
        if (part && strcmp(part, part_names[i])) continue;
        if (p.part->node) STK_TRY(lint_part(recipe, &p));
    }
done:
    if (n_found) *n_found = n;
    stk_recipe_free(recipe);
    return status;
}
