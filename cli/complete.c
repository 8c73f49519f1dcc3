/* See complete.h. */
#include "complete.h"

#include <ctype.h>
#include <string.h>

#include "stoker/data/download.h"
#include "stoker/data/synthetic.h"
#include "stoker/files/exchange.h"
#include "stoker/graph/device.h"
#include "stoker/nn/models.h"

/* Once each; only the first word of a text, as of "bert: {size: mini}". */
static void add_word(complete_kind *kind, const char *text, size_t n_text)
{
    size_t n = strlen(kind->words);
    char word[128];
    snprintf(word, sizeof(word), " %.*s ", (int)(n_text < 100 ? n_text : 100), text);
    word[1 + strcspn(word + 1, ": ")] = 0;
    size_t n_word = strlen(word + 1);
    for (const char *at = kind->words; (at = strstr(at, word + 1)); at++)
        if ((at == kind->words || at[-1] == ' ') && (at[n_word] == ' ' || !at[n_word])) return;
    snprintf(kind->words + n, sizeof(kind->words) - n, "%s%s", n ? " " : "", word + 1);
}

static void add_text(complete_kind *kind, const char *text)
{
    add_word(kind, text, strlen(text));
}

static void add_models(complete_kind *kind)
{
    stk_known_model model;
    for (int i = 0; stk_known_model_get(i, &model); i++)
        add_text(kind, model.name);
}

static void add_devices(complete_kind *kind)
{
    stk_device_info info;
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++)
        add_text(kind, info.name);
}

static void add_datasets(complete_kind *kind)
{
    const char *name;
    const stk_download_set *set;
    add_text(kind, "digits");
    add_text(kind, "cuda-libs");
    for (int i = 0; (name = stk_synthetic_name(i, NULL, NULL)); i++)
        add_text(kind, name);
    for (int i = 0; (set = stk_download_at(i)); i++)
        add_text(kind, set->name);
}

static void add_names(complete_kind *kind)
{
    const char *name, *about;
    for (int i = 0; (name = stk_exchange_names(i, &about)); i++)
        add_text(kind, name);
}

static void add_verbs(complete_kind *kind)
{
    const cli_verb *verb;
    for (int i = 0; (verb = cli_next_of(NULL, &i));)
        add_text(kind, verb->name);
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && !strncmp(text, word, n);
}

/* One of the alternatives of a value. */
static void add_alternative(complete_kind *out, const char *text, size_t n)
{
    static const struct {
        const char *name;
        void (*add)(complete_kind *kind);
    } lists[] = {{"MODEL", add_models},
                 {"DEVICE", add_devices},
                 {"DATASET", add_datasets},
                 {"WHOSE", add_names},
                 {"VERB", add_verbs}};
    static const char *const files[] = {"FILE", "PATH", "SOURCE", "TEXT"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (is_word(text, n, files[i])) out->file = true;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (is_word(text, n, lists[i].name)) lists[i].add(out);
    if (is_word(text, n, "DIR")) out->dir = true;
    if (is_word(text, n, "RECIPE")) out->recipe = true;
    if (is_word(text, n, "RUN")) out->run = true;
    if (n > 0 && islower((unsigned char)text[0])) add_word(out, text, n);
}

void complete_find(const char *value, size_t n, complete_kind *out)
{
    memset(out, 0, sizeof(*out));
    if (n > 0 && value[0] == '[') {
        value++;
        n--;
    }
    if (n > 0 && value[n - 1] == ']') n--;
    if (n > 3 && !strncmp(value + n - 3, "...", 3)) {
        out->repeats = true;
        n -= 3;
    }
    for (size_t at = 0; at < n;) {
        size_t length = 0;
        while (at + length < n && value[at + length] != '|')
            length++;
        add_alternative(out, value + at, length);
        at += length + 1;
    }
}

int complete_places(const cli_verb *verb, complete_kind out[COMPLETE_PLACES])
{
    int n = 0;
    if (verb == &cli_watch) {
        complete_find("", 0, &out[0]);
        out[0].command = true;
        return 1;
    }
    for (const char *word = verb->usage; n < COMPLETE_PLACES && *word;) {
        size_t length = strcspn(word, " ,");
        if (word[0] == '-' || !strncmp(word, "[-", 2) || !strncmp(word, "[OPTION", 7)) break;
        complete_find(word, length, &out[n]);
        /* "RUN [RUN...]": as many as there are. */
        if (n > 0 && out[n].repeats && !memcmp(out[n].words, out[n - 1].words, sizeof(out[n].words)) &&
            out[n].file == out[n - 1].file && out[n].run == out[n - 1].run) {
            out[n - 1].repeats = true;
            break;
        }
        n++;
        word += length;
        word += strspn(word, " ");
    }
    return n;
}

void complete_quote(const char *text, const char *marks)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (strchr(marks, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
    putchar('\'');
}
