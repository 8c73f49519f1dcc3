/* See report/run_data.h. */
#include "report/run_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/neighbour.h"

enum { PATH_BYTES = 4096 };

const json_t *stk_json_find(const json_t *object, const char *path)
{
    char part[64];
    while (object && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof(part)) return NULL;
        memcpy(part, path, n);
        part[n] = 0;
        object = json_object_get(object, part);
        path += n + (path[n] == '.');
    }
    return object;
}

double stk_json_number(const json_t *object, const char *path)
{
    const json_t *value = stk_json_find(object, path);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *stk_json_text(const json_t *object, const char *path)
{
    const json_t *value = stk_json_find(object, path);
    return json_is_string(value) ? json_string_value(value) : "";
}

/* *out: the file's bytes with a 0 behind them; NULL where there is none that can be read. */
static stk_status read_text(const char *folder, const char *name, char **out, size_t *n)
{
    char path[PATH_BYTES];
    uint8_t *data = NULL;
    size_t capacity = 0;
    *out = NULL;
    if (stk_path_join(path, sizeof(path), folder, name) != STK_OK || !stk_path_exists(path)) return STK_OK;
    stk_status status = stk_file_read(path, &data, &capacity, n);
    if (status == STK_OK && !(*out = realloc(data, *n + 1))) status = stk_fail_memory(*n + 1);
    if (*out) (*out)[*n] = 0;
    if (!*out) free(data);
    return status == STK_NO_MEMORY ? status : STK_OK;
}

/* NULL: there is none that can be read. */
static stk_status read_object(const char *folder, const char *name, json_t **out)
{
    size_t n;
    char *text;
    json_error_t error;
    *out = NULL;
    STK_RETURN_IF_ERROR(read_text(folder, name, &text, &n));
    stk_status status = text ? stk_json_parse(text, n, 0, out, &error) : STK_OK;
    free(text);
    return status == STK_NO_MEMORY ? status : STK_OK;
}

static stk_point make_point(const json_t *line)
{
    return (stk_point){.step = stk_json_number(line, "step"),
                       .epoch = stk_json_number(line, "epoch"),
                       .loss = stk_json_number(line, "loss"),
                       .accuracy = stk_json_number(line, "accuracy"),
                       .lr = stk_json_number(line, "lr"),
                       .samples_per_s = stk_json_number(line, "samples_per_s"),
                       .input = stk_json_number(line, "input_wait_share"),
                       .time = stk_json_number(line, "time"),
                       .train_loss = stk_json_number(line, "train_loss"),
                       .valid_loss = stk_json_number(line, "valid_loss"),
                       .valid_accuracy = stk_json_number(line, "valid_accuracy"),
                       .is_epoch = !strcmp(stk_json_text(line, "kind"), "epoch")};
}

/* A line that is torn or not understood is left out. */
static stk_status read_points(const char *folder, stk_run_data *out)
{
    size_t n, capacity = 0;
    char *text;
    json_error_t error;
    STK_RETURN_IF_ERROR(read_text(folder, "metrics.jsonl", &text, &n));
    for (char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        json_t *object;
        if (stk_json_parse(line, length, 0, &object, &error) == STK_NO_MEMORY) {
            free(text);
            return STK_NO_MEMORY;
        }
        if (json_is_object(object)) {
            if ((size_t)out->n_points == capacity) {
                capacity = capacity ? 2 * capacity : 256;
                stk_point *grown = realloc(out->point, capacity * sizeof(*grown));
                if (!grown) {
                    json_decref(object);
                    free(text);
                    return stk_fail_memory(capacity * sizeof(*grown));
                }
                out->point = grown;
            }
            out->point[out->n_points++] = make_point(object);
        }
        json_decref(object);
        line += length + (line[length] == '\n');
    }
    free(text);
    return STK_OK;
}

static stk_status fail_without_recipe(const char *folder)
{
    char path[PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, "recipe.yaml"));
    if (access(path, R_OK) != 0 && errno == EACCES)
        return stk_fail(STK_IO, "cannot read '%s': %s", path, stk_errno_text(EACCES));
    return stk_fail(STK_NOT_FOUND, "folder '%s' holds no run: no recipe.yaml", folder);
}

stk_status stk_run_data_read(const char *folder, stk_run_data *out)
{
    size_t n;
    char hint[STK_PATH_HINT];
    *out = (stk_run_data){.folder = folder};
    if (!stk_path_is_dir(folder))
        return stk_fail(STK_NOT_FOUND, "there is no run folder '%s'%s", folder, stk_path_hint(folder, hint));
    STK_RETURN_IF_ERROR(read_text(folder, "recipe.yaml", &out->recipe, &n));
    if (!out->recipe) return fail_without_recipe(folder);
    STK_RETURN_IF_ERROR(read_object(folder, "result.json", &out->result));
    STK_RETURN_IF_ERROR(read_object(folder, "profile.json", &out->profile));
    STK_RETURN_IF_ERROR(read_object(folder, "data.json", &out->data));
    return read_points(folder, out);
}

const char *stk_run_data_name(const stk_run_data *data)
{
    const char *slash = strrchr(data->folder, '/');
    return slash && slash[1] ? slash + 1 : data->folder;
}

void stk_run_data_free(stk_run_data *data)
{
    free(data->recipe);
    free(data->point);
    json_decref(data->result);
    json_decref(data->profile);
    json_decref(data->data);
    *data = (stk_run_data){0};
}
