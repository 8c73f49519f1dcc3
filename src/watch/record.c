#include "watch/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"

static const char header[] = "stoker-watch-record 1";
enum { MOST_ENTRIES = 100000 };

#define X(name) +1
enum {
    N_MACHINE = 0 STK_WATCH_MACHINE_FIELDS(X),
    N_GPU = 0 STK_WATCH_GPU_FIELDS(X),
    N_PROCESS = 0 STK_WATCH_PROCESS_FIELDS(X),
    N_THREAD = 0 STK_WATCH_THREAD_FIELDS(X),
};
#undef X

typedef struct kind {
    char letter;
    int n_fields;
    size_t offset; /* of the list in a sample */
} kind;

static const kind kinds[STK_WATCH_KINDS] = {{'G', N_GPU, offsetof(stk_watch_sample, gpus)},
                                            {'P', N_PROCESS, offsetof(stk_watch_sample, processes)},
                                            {'H', N_THREAD, offsetof(stk_watch_sample, threads)}};

static stk_watch_list *list_of(const stk_watch_sample *sample, const kind *k)
{
    return (stk_watch_list *)((char *)sample + k->offset);
}

/* --- writing --- */

static void put_fields(FILE *file, char letter, int64_t id, const int64_t *old, const int64_t *new, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        int64_t before = old ? old[i] : -1;
        if (new[i] == before) continue;
        if (!any) fprintf(file, "%c %" PRId64, letter, id);
        any = true;
        fprintf(file, " %d:%" PRId64, i, (int64_t)((uint64_t) new[i] - (uint64_t)before));
    }
    if (any || !old) fprintf(file, any ? "\n" : "%c %" PRId64 "\n", letter, id);
}

static void put_list(FILE *file, const kind *k, const stk_watch_list *old, const stk_watch_list *new)
{
    for (size_t i = 0; i < old->n; i++) {
        int64_t id = *(int64_t *)((char *)old->data + i * old->entry_bytes);
        if (!stk_watch_list_find(new, id)) fprintf(file, "X %c %" PRId64 "\n", k->letter, id);
    }
    for (size_t i = 0; i < new->n; i++) {
        const int64_t *entry = (int64_t *)((char *)new->data + i *new->entry_bytes);
        const int64_t *before = stk_watch_list_find(old, *entry);
        put_fields(file, k->letter, *entry, before ? before + 1 : NULL, entry + 1, k->n_fields);
    }
}

static void put_facts(stk_watch_recorder *recorder, const stk_watch_facts *facts)
{
    for (; recorder->n_facts < facts->n; recorder->n_facts++)
        fprintf(recorder->file, "I %s %s\n", facts->fact[recorder->n_facts].key, facts->fact[recorder->n_facts].text);
}

static stk_status check(const stk_watch_recorder *recorder)
{
    return ferror(recorder->file) ? stk_fail(STK_IO, "cannot write the recording: %s", stk_errno_text(errno)) : STK_OK;
}

stk_status stk_watch_recorder_open(stk_watch_recorder *recorder, const char *path)
{
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a recording of 'stoker watch'", 0, header, strlen(header)));
    recorder->file = fopen(path, "we");
    if (!recorder->file) return stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    stk_watch_sample_init(&recorder->last);
    fprintf(recorder->file, "%s\n", header);
    return check(recorder);
}

stk_status stk_watch_recorder_put(stk_watch_recorder *recorder, const stk_watch_sample *sample,
                                  const stk_watch_facts *facts)
{
    put_facts(recorder, facts);
    put_fields(recorder->file, 'M', 0, (const int64_t *)&recorder->last.machine, (const int64_t *)&sample->machine,
               N_MACHINE);
    for (int i = 0; i < STK_WATCH_KINDS; i++)
        put_list(recorder->file, &kinds[i], list_of(&recorder->last, &kinds[i]), list_of(sample, &kinds[i]));
    fprintf(recorder->file, "T %" PRId64 "\n", sample->time_us - recorder->last.time_us);
    STK_RETURN_IF_ERROR(check(recorder));
    return stk_watch_sample_copy(&recorder->last, sample);
}

stk_status stk_watch_recorder_close(stk_watch_recorder *recorder, const stk_watch_facts *facts)
{
    if (!recorder->file) return STK_OK;
    put_facts(recorder, facts);
    bool failed = ferror(recorder->file) != 0;
    if (fclose(recorder->file) != 0) failed = true;
    recorder->file = NULL;
    stk_watch_sample_free(&recorder->last);
    return failed ? stk_fail(STK_IO, "cannot write the recording: %s", stk_errno_text(errno)) : STK_OK;
}

/* --- reading --- */

/* A whole number at *p, which goes behind it. */
static bool take_number(const char **p, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(*p, &end, 10);
    if (end == *p || errno != 0) return false;
    *p = end;
    *out = value;
    return true;
}

/* " i:d i:d" to the end of the line. */
static bool take_fields(const char *p, int64_t *fields, int n)
{
    while (*p == ' ') {
        int64_t i, grown;
        p++;
        if (!take_number(&p, &i) || *p++ != ':' || !take_number(&p, &grown) || i < 0 || i >= n) return false;
        fields[i] = (int64_t)((uint64_t)fields[i] + (uint64_t)grown);
    }
    return *p == 0;
}

static bool take_fact(const char *p, stk_watch_facts *facts, stk_status *status)
{
    const char *blank = strchr(p, ' ');
    char key[32];
    if (!blank || blank == p || blank - p >= (int)sizeof(key)) return false;
    snprintf(key, sizeof(key), "%.*s", (int)(blank - p), p);
    *status = stk_watch_facts_add(facts, key, "%s", blank + 1);
    return true;
}

static bool take_entry(const char *line, stk_watch_sample *sample, stk_status *status)
{
    const char *p = line + 2;
    int64_t id;
    bool gone = line[0] == 'X';
    char letter = line[0];
    if (gone) {
        letter = *p++;
        if (letter == 0 || *p++ != ' ') return false;
    }
    if (!take_number(&p, &id)) return false;
    if (letter == 'M' && !gone) return take_fields(p, (int64_t *)&sample->machine, N_MACHINE);
    for (int i = 0; i < STK_WATCH_KINDS; i++) {
        stk_watch_list *list = list_of(sample, &kinds[i]);
        if (kinds[i].letter != letter) continue;
        if (gone) {
            stk_watch_list_remove(list, id);
            return *p == 0;
        }
        if (list->n >= MOST_ENTRIES) return false;
        int64_t *entry = stk_watch_list_add(list, id);
        if (!entry) *status = stk_fail_memory(list->entry_bytes);
        return entry ? take_fields(p, entry + 1, kinds[i].n_fields) : true;
    }
    return false;
}

static bool take_time(const char *p, stk_watch_sample *sample)
{
    int64_t us;
    if (!take_number(&p, &us) || *p || us < 0 || us > INT64_MAX / 2 - sample->time_us) return false;
    sample->time_us += us;
    return true;
}

static bool take_line(const char *line, stk_watch_sample *sample, stk_watch_facts *facts, stk_watch_visit visit,
                      void *user, stk_status *status)
{
    if (!line[0] || line[1] != ' ') return false;
    if (line[0] == 'I') return take_fact(line + 2, facts, status);
    if (line[0] != 'T') return take_entry(line, sample, status);
    if (!take_time(line + 2, sample)) return false;
    *status = visit(user, sample);
    return true;
}

stk_status stk_watch_record_parse(const char *text, size_t n, stk_watch_facts *facts, stk_watch_visit visit, void *user)
{
    stk_watch_sample sample;
    stk_status status = STK_OK;
    int64_t i_line = 0;
    char line[4096];
    stk_watch_sample_init(&sample);
    for (const char *p = text, *end; status == STK_OK && (end = memchr(p, '\n', n - (size_t)(p - text))); p = end + 1) {
        size_t length = (size_t)(end - p);
        bool good = length < sizeof(line) && !memchr(p, 0, length);
        snprintf(line, sizeof(line), "%.*s", (int)(good ? length : 0), p);
        if (i_line++ == 0)
            good = good && !strcmp(line, header);
        else
            good = good && take_line(line, &sample, facts, visit, user, &status);
        if (!good && status == STK_OK)
            status = i_line == 1
                         ? stk_fail(STK_CORRUPT, "not a recording of stoker watch: the first line is not '%s'", header)
                         : stk_fail(STK_CORRUPT, "line %" PRId64 " of the recording is damaged", i_line);
    }
    if (status == STK_OK && i_line == 0) status = stk_fail(STK_CORRUPT, "not a recording of stoker watch: it is empty");
    stk_watch_sample_free(&sample);
    return status;
}
