/* Numbers as people read them, and texts for JSON and shells. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli.h"
#include "stoker/printable.h"

const char *cli_count(int64_t n, char out[CLI_TEXT])
{
    char digits[32];
    int length = snprintf(digits, sizeof(digits), "%" PRId64, n), k = 0;
    for (int i = 0; i < length; i++) {
        out[k++] = digits[i];
        int left = length - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-') out[k++] = ',';
    }
    out[k] = 0;
    return out;
}

static const char *scaled(double x, double base, const char *const *units, int n, char out[CLI_TEXT])
{
    int i = 0;
    while (i + 1 < n && x >= base * 0.9995) {
        x /= base;
        i++;
    }
    /* Three digits say enough. */
    snprintf(out, CLI_TEXT, "%.*f %s", i == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, units[i]);
    return out;
}

const char *cli_bytes(double bytes, char out[CLI_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, units, 5, out);
}

const char *cli_flops(double flops, char out[CLI_TEXT])
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
    return scaled(flops, 1000, units, 5, out);
}

const char *cli_duration(double s, char out[CLI_TEXT])
{
    if (!(s >= 0) || s > 1e9) {
        snprintf(out, CLI_TEXT, "?");
        return out;
    }
    int64_t total = (int64_t)(s + 0.5), hours = total / 3600, minutes = total / 60 % 60, seconds = total % 60;
    if (hours > 0)
        snprintf(out, CLI_TEXT, "%" PRId64 ":%02d:%02d", hours, (int)minutes, (int)seconds);
    else if (minutes > 0)
        snprintf(out, CLI_TEXT, "%d:%02d", (int)minutes, (int)seconds);
    else
        snprintf(out, CLI_TEXT, "%.*f s", s < 9.95 ? 1 : 0, s);
    return out;
}

const char *cli_shown(const char *text)
{
    enum { N_KEPT = 8, BYTES = 2 * CLI_PATH };
    static char kept[N_KEPT][BYTES], hidden[BYTES];
    static int i;
    i = (i + 1) % N_KEPT;
    return stk_printable(stk_hide_secrets(text, hidden, BYTES), kept[i], BYTES);
}

/* What is escaped for a terminal is so here, too; bytes that are no text, which JSON cannot hold, are U+FFFD. */
void cli_json_text(FILE *file, const char *text)
{
    char shown[STK_PRINTABLE_BYTES];
    fputc('"', file);
    for (int n; *text; text += n) {
        unsigned char byte = (unsigned char)*text;
        n = stk_printable_character(text, shown);
        if (byte == '"' || byte == '\\')
            fprintf(file, "\\%c", byte);
        else if (byte < 0x80 && shown[0] == '\\')
            fprintf(file, "\\u%04x", byte);
        else
            fputs(byte >= 0x80 && n == 1 ? "\\ufffd" : shown, file);
    }
    fputc('"', file);
}

void cli_json_place(FILE *file, const char *text)
{
    static char hidden[2 * CLI_PATH];
    cli_json_text(file, stk_hide_secrets(text, hidden, sizeof(hidden)));
}

void cli_json_number(FILE *file, double x)
{
    if (isfinite(x))
        fprintf(file, "%.9g", x);
    else
        fputs("null", file);
}

void cli_shell_word(FILE *file, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:,@%+-";
    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, file);
        return;
    }
    fputc('\'', file);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc(*word, file);
    }
    fputc('\'', file);
}

void cli_json_values(const char *prefix, const stk_metrics *metrics)
{
    for (int i = 0; i < metrics->n_values; i++) {
        printf(", \"%s%s\": ", prefix, metrics->value[i].name);
        cli_json_number(stdout, metrics->value[i].value);
    }
}
