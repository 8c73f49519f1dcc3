/* What is played: the variables of play.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/play/play.h"

play_settings play_set;

#define X(name, symbol, since, needs, parameters) #name,
static const char *const call_names[] = {PLAY_API(X)};
#undef X

enum { MOST_FAILURES = 16, MOST_CHANGES = 8 };

static struct {
    char name[48];
    unsigned long long at;
    int code;
} failures[MOST_FAILURES];

static struct {
    unsigned long long from;
    size_t bytes;
} changes[MOST_CHANGES];

static int n_failures, n_changes;
static char hanging[48] = "cuGraphLaunch";
static unsigned long long hangs_at, n_memory_calls;

static size_t read_bytes(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return (size_t)(n * (double)((size_t)1 << shift));
}

/* The word behind "key=" of a list with commas. */
static bool find_key(const char *list, const char *key, char *out, size_t n)
{
    const size_t length = strlen(key);
    for (const char *p = list; p && *p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (!strncmp(p, key, length) && p[length] == '=') {
            snprintf(out, n, "%.*s", (int)strcspn(p + length + 1, ","), p + length + 1);
            return true;
        }
    return false;
}

static void read_chip(void)
{
    char word[64];
    const char *list = getenv("STOKER_PLAY_CHIP"), *driver = getenv("STOKER_PLAY_DRIVER");
    const char *order = getenv("STOKER_PLAY_ORDER");
    play_set = (play_settings){.capability = 90, .n_chips = 1, .n_units = 132, .driver = 13000, .memory = 4ull << 30};
    snprintf(play_set.name, sizeof(play_set.name), "Played GPU");
    if (find_key(list, "capability", word, sizeof(word))) play_set.capability = (int)(strtod(word, NULL) * 10 + 0.5);
    if (find_key(list, "memory", word, sizeof(word))) play_set.memory = read_bytes(word);
    play_set.has_peers = !find_key(list, "peers", word, sizeof(word)) || atoi(word) != 0;
    if (find_key(list, "chips", word, sizeof(word))) play_set.n_chips = atoi(word);
    if (find_key(list, "units", word, sizeof(word))) play_set.n_units = atoi(word);
    if (find_key(list, "mig", word, sizeof(word))) play_set.is_slice = atoi(word) != 0;
    find_key(list, "name", play_set.name, sizeof(play_set.name));
    if (play_set.n_chips > MOST_CHIPS) play_set.n_chips = MOST_CHIPS;
    if (driver) play_set.driver = atoi(driver);
    if (order) play_set.order = strtoull(order, NULL, 10);
}

static void read_failures(void)
{
    char list[512], *rest = NULL;
    snprintf(list, sizeof(list), "%s", getenv("STOKER_PLAY_FAIL") ? getenv("STOKER_PLAY_FAIL") : "");
    for (char *word = strtok_r(list, ",", &rest); word && n_failures < MOST_FAILURES;
         word = strtok_r(NULL, ",", &rest), n_failures++)
        if (sscanf(word, "%47[^:]:%llu:%d", failures[n_failures].name, &failures[n_failures].at,
                   &failures[n_failures].code) != 3)
            play_misuse("STOKER_PLAY_FAIL: '%s' is no CALL:NUMBER:CODE", word);
}

static void read_others(void)
{
    char list[256], *rest = NULL;
    snprintf(list, sizeof(list), "%s", getenv("STOKER_PLAY_OTHERS") ? getenv("STOKER_PLAY_OTHERS") : "");
    for (char *word = strtok_r(list, ",", &rest); word && n_changes < MOST_CHANGES;
         word = strtok_r(NULL, ",", &rest), n_changes++) {
        const char *colon = strchr(word, ':');
        changes[n_changes].from = colon ? strtoull(word, NULL, 10) : 0;
        changes[n_changes].bytes = read_bytes(colon ? colon + 1 : word);
    }
}

void play_read_settings(void)
{
    const char *hang = getenv("STOKER_PLAY_HANG");
    read_chip();
    read_failures();
    read_others();
    if (!hang || !*hang) return;
    const char *colon = strchr(hang, ':');
    if (colon) snprintf(hanging, sizeof(hanging), "%.*s", (int)(colon - hang), hang);
    hangs_at = strtoull(colon ? colon + 1 : hang, NULL, 10);
}

int play_failure(play_call call, unsigned long long n_calls)
{
    for (int i = 0; i < n_failures; i++)
        if (failures[i].at == n_calls && !strcmp(failures[i].name, call_names[call])) return failures[i].code;
    return 0;
}

bool play_hangs(play_call call, unsigned long long n_calls)
{
    return hangs_at != 0 && n_calls == hangs_at && !strcmp(hanging, call_names[call]);
}

bool play_is_missing(const char *name)
{
    const char *list = getenv("STOKER_PLAY_MISSING");
    const size_t n = strlen(name);
    for (const char *p = list; p && *p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

size_t play_others(void)
{
    size_t bytes = 0;
    n_memory_calls++;
    for (int i = 0; i < n_changes; i++)
        if (n_memory_calls >= changes[i].from) bytes = changes[i].bytes;
    return bytes < play_set.memory ? bytes : play_set.memory;
}
