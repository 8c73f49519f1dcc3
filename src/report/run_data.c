/* See report/run_data.h. */
#include "report/run_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
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

/* The file's bytes with a 0 behind them; NULL where it cannot be read. */
static char *read_text(const char *folder, const char *name, size_t *n)
{
    char path[PATH_BYTES];
    uint8_t *data = NULL;
    size_t capacity = 0;
    if (stk_path_join(path, sizeof(path), folder, name) != STK_OK || !stk_path_exists(path)) return NULL;
    if (stk_file_read(path, &data, &capacity, n) != STK_OK) {
        free(data);
        return NULL;
    }
    char *text = realloc(data, *n + 1);
    if (!text) {
        free(data);
        return NULL;
    }
    text[*n] = 0;
    return text;
}

static json_t *read_object(const char *folder, const char *name)
{
    size_t n;
    char *text = read_text(folder, name, &n);
    json_t *object = text ? json_loadb(text, n, 0, NULL) : NULL;
    free(text);
    return object;
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
    char *text = read_text(folder, "metrics.jsonl", &n);
    for (char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        json_t *object = json_loadb(line, length, 0, NULL);
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
    out->recipe = read_text(folder, "recipe.yaml", &n);
    if (!out->recipe) return fail_without_recipe(folder);
    out->result = read_object(folder, "result.json");
    out->profile = read_object(folder, "profile.json");
    out->data = read_object(folder, "data.json");
    return read_points(folder, out);
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
