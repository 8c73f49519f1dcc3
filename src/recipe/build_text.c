/* A part's source of text from its keys. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"
#include "stoker/data/csv.h"
#include "stoker/data/masked.h"
#include "stoker/data/text.h"
#include "tensor/shape.h"

static stk_status build_tokens(const stk_yaml_node *source, stk_dataset **out)
{
    const char **paths, *dtype = stk_yaml_get(source, "dtype")->text;
    int n_paths;
    stk_tokens_config config = {.length = stk_yaml_int(source, "length", 0),
                                .stride = stk_yaml_int(source, "stride", 0),
                                .vocabulary = stk_yaml_int(source, "vocabulary", 0)};
    config.type = !strcmp(dtype, "u16") ? STK_TOKENS_U16 : !strcmp(dtype, "u32") ? STK_TOKENS_U32 : STK_TOKENS_AUTO;
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_tokens(paths, n_paths, &config);
    free(paths);
    return STK_OK;
}

static stk_status build_lines(const stk_yaml_node *source, stk_dataset **out)
{
    const char **paths;
    int n_paths;
    stk_text_config config = {.whole = !strcmp(stk_yaml_get(source, "record")->text, "file"),
                              .by_folder = stk_yaml_get(source, "by") != NULL,
                              .skip = stk_yaml_int(source, "skip", 0),
                              .in_memory = stk_yaml_get(source, "in_memory")->truth};
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_text(paths, n_paths, &config);
    free(paths);
    return STK_OK;
}

/* --- tables --- */

static stk_status make_field(const stk_yaml_node *node, const char ***columns, const char ***classes,
                             stk_csv_field *out)
{
    const stk_yaml_node *given = stk_yaml_get(node, "default"), *column = stk_yaml_get(node, "columns"),
                        *class = stk_yaml_get(node, "classes");
    const char *dtype = stk_yaml_get(node, "dtype")->text;
    *out = (stk_csv_field){.name = node->key, .n_columns = 1, .default_value = given ? given->text : NULL};
    if (!strcmp(dtype, "text"))
        out->kind = STK_CSV_TEXT;
    else if (!strcmp(dtype, "class"))
        out->kind = STK_CSV_CLASS;
    else
        stk_dtype_from_name(dtype, &out->dtype);
    if (class && out->kind != STK_CSV_CLASS) return stk_yaml_fail(class, "'classes' is for the dtype class");
    if (class) STK_RETURN_IF_ERROR(stk_build_list(class, classes, &out->n_classes));
    if (column) STK_RETURN_IF_ERROR(stk_build_list(column, columns, &out->n_columns));
    out->columns = column ? *columns : (const char *const *)&node->key;
    out->classes = *classes;
    return STK_OK;
}

static stk_status read_delimiter(const stk_yaml_node *node, char *out)
{
    *out = !strcmp(node->text, "tab") ? '\t' : node->text[0];
    if (*out && (*out == '\t' || !node->text[1])) return STK_OK;
    return stk_yaml_fail(node, "the delimiter is one sign, or tab, not '%.20s'", node->text);
}

static stk_status build_csv(const stk_yaml_node *source, stk_dataset **out)
{
    enum { MOST = 16 };
    const stk_yaml_node *fields = stk_yaml_get(source, "fields"), *missing = stk_yaml_get(source, "missing");
    const char **paths = NULL, **columns[MOST] = {NULL}, **classes[MOST] = {NULL};
    stk_csv_field field[MOST];
    stk_csv_config config = {.fields = field,
                             .no_header = !stk_yaml_get(source, "header")->truth,
                             .no_quotes = !stk_yaml_get(source, "quotes")->truth,
                             .missing = missing ? missing->text : NULL,
                             .in_memory = stk_yaml_get(source, "in_memory")->truth};
    stk_status status;
    int n_paths;
    if (fields->n_children > MOST) return stk_yaml_fail(fields, "more than %d fields", MOST);
    STK_TRY(read_delimiter(stk_yaml_get(source, "delimiter"), &config.delimiter));
    for (const stk_yaml_node *node = fields->child; node; node = node->next, config.n_fields++)
        STK_TRY(make_field(node, &columns[config.n_fields], &classes[config.n_fields], &field[config.n_fields]));
    STK_TRY(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_csv(paths, n_paths, &config);
done:
    for (int i = 0; i < MOST; i++) {
        free(columns[i]);
        free(classes[i]);
    }
    free(paths);
    return status;
}

bool stk_build_is_text(const char *kind)
{
    return !strcmp(kind, "tokens") || !strcmp(kind, "text") || !strcmp(kind, "csv");
}

stk_status stk_build_text(const stk_yaml_node *source, stk_dataset **out)
{
    if (!strcmp(source->key, "csv")) return build_csv(source, out);
    return !strcmp(source->key, "tokens") ? build_tokens(source, out) : build_lines(source, out);
}

stk_status stk_build_masked(const stk_recipe *recipe, stk_dataset *dataset)
{
    const stk_yaml_node *masked = recipe->part[STK_PART_TRAIN].masked;
    stk_tokenizer *tokenizer;
    if (!masked) return STK_OK;
    const stk_yaml_node *path = stk_yaml_get(masked, "tokenizer");
    stk_status status = stk_tokenizer_open(path->text, NULL, &tokenizer);
    if (status != STK_OK) return stk_build_fail(path, status);
    stk_dataset_mask_tokens(dataset, tokenizer, stk_yaml_get(masked, "share")->real);
    stk_tokenizer_free(tokenizer);
    return stk_build_check(path, dataset);
}
