/* Numbers as people read them, and texts for JSON and shells. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/plain_number.h"
#include "base/text.h"
#include "cli.h"
#include "stoker/printable.h"

_Static_assert((int)CLI_TEXT == (int)STK_PLAIN_TEXT, "one length of texts");

const char *cli_count(int64_t n, char out[CLI_TEXT])
{
    char count[STK_COUNT_TEXT];
    snprintf(out, CLI_TEXT, "%s%s", n < 0 ? "-" : "", stk_count_text(n < 0 ? -n : n, count));
    return out;
}

const char *cli_bytes(double bytes, char out[CLI_TEXT])
{
    return stk_plain_bytes(bytes, out);
}

const char *cli_flops(double flops, char out[CLI_TEXT])
{
    return stk_plain_flops(flops, out);
}

const char *cli_duration(double s, char out[CLI_TEXT])
{
    return stk_plain_duration(s, out);
}

const char *cli_time(double s, char out[CLI_TEXT])
{
    return stk_plain_time(s, out);
}

const char *cli_rate(double x, char out[CLI_TEXT])
{
    return stk_plain_rate(x, out);
}

const char *cli_number_text(double x, char out[CLI_TEXT])
{
    return stk_plain_number(x, out);
}

const char *cli_loss(double x, char out[CLI_TEXT])
{
    return stk_plain_loss(x, out);
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
