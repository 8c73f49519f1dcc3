/* See events/prometheus.h. */
#include "events/prometheus.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "base/printable.h"
#include "base/text.h"

static bool is_counter(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "_total");
}

void stk_prometheus_add(stk_text *out, const char *run, const char *folder, const stk_gauge *gauge, int n)
{
    const char *last = "";
    for (int i = 0; i < n; i++) {
        if (!isfinite(gauge[i].value)) continue;
        if (strcmp(last, gauge[i].name))
            stk_text_add(out, "# HELP %s %s\n# TYPE %s %s\n", gauge[i].name, gauge[i].help, gauge[i].name,
                         is_counter(gauge[i].name) ? "counter" : "gauge");
        last = gauge[i].name;
        stk_text_add(out, "%s{run=\"", gauge[i].name);
        stk_text_add_quotable(out, run);
        stk_text_add(out, "\",folder=\"");
        stk_text_add_quotable(out, folder);
        stk_text_add(out, "\"%s%s} %.9g\n", gauge[i].label[0] ? "," : "", gauge[i].label, gauge[i].value);
    }
}

/* Not synced: after a crash of the machine nobody asks for its last second. */
static stk_status replace(const char *path, const stk_text *text)
{
    stk_new_file file;
    STK_RETURN_IF_ERROR(stk_new_file_begin(&file, path));
    stk_status status = stk_write_all(file.fd, path, text->data, text->n);
    if (status == STK_OK) status = stk_new_file_finish(&file, false);
    stk_new_file_end(&file);
    return status;
}

stk_status stk_prometheus_write(const char *path, const stk_text *text)
{
    return text->n > 0 ? replace(path, text) : STK_OK;
}
