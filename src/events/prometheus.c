/* See events/prometheus.h. */
#include "events/prometheus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

static void add_escaped(stk_text *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            stk_text_add(out, "\\n");
        else
            stk_text_add(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static bool is_counter(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "_total");
}

void stk_prometheus_add(stk_text *out, const char *run, const stk_gauge *gauge, int n)
{
    const char *last = "";
    for (int i = 0; i < n; i++) {
        if (!isfinite(gauge[i].value)) continue;
        if (strcmp(last, gauge[i].name))
            stk_text_add(out, "# HELP %s %s\n# TYPE %s %s\n", gauge[i].name, gauge[i].help, gauge[i].name,
                         is_counter(gauge[i].name) ? "counter" : "gauge");
        last = gauge[i].name;
        stk_text_add(out, "%s{run=\"", gauge[i].name);
        add_escaped(out, run);
        stk_text_add(out, "\"%s%s} %.9g\n", gauge[i].label[0] ? "," : "", gauge[i].label, gauge[i].value);
    }
}

/* Not synced: after a crash of the machine nobody asks for its last second. */
static stk_status replace(const char *path, const stk_text *text)
{
    char temporary[4096];
    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return stk_fail(STK_IO, "cannot open '%s': %s", temporary, stk_errno_text(errno));
    stk_status status = stk_write_all(fd, temporary, text->data, text->n);
    if (close(fd) < 0 && status == STK_OK) status = stk_fail(STK_IO, "cannot write '%s'", temporary);
    if (status == STK_OK && rename(temporary, path) < 0)
        status = stk_fail(STK_IO, "cannot rename '%s': %s", temporary, stk_errno_text(errno));
    if (status != STK_OK) (void)unlink(temporary);
    return status;
}

stk_status stk_prometheus_write(const char *path, const stk_text *text)
{
    return text->n > 0 ? replace(path, text) : STK_OK;
}
