/* stoker top --serve: the GPUs' numbers for Prometheus, read once a second until Ctrl-C. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "events/exporter.h"
#include "top.h"
#include "watch/dcgm.h"

static int missing(const stk_watch_facts *facts)
{
    const char *why = stk_watch_facts_get(facts, "missing", 0);
    cli_error("there is no GPU to tell of%s%s", why ? ": " : "", why ? why : "");
    return CLI_FAILED;
}

/* When it was read is told, too: a driver that hangs leaves old numbers behind. */
static stk_status put(stk_exporter *exporter, const stk_watch_nvml *nvml, const stk_watch_sample *sample,
                      const char *host)
{
    stk_text text = {0};
    stk_watch_dcgm_add(&text, nvml, sample, host);
    stk_text_add(&text,
                 "# HELP stoker_gpus_read_timestamp_seconds When these numbers were read.\n"
                 "# TYPE stoker_gpus_read_timestamp_seconds gauge\nstoker_gpus_read_timestamp_seconds %lld\n",
                 (long long)time(NULL));
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) status = stk_exporter_put(exporter, &text);
    stk_text_free(&text);
    return status;
}

static stk_status serve(stk_watch_nvml *nvml, stk_watch_facts *facts, stk_exporter *exporter)
{
    char host[256] = "";
    stk_watch_sample sample;
    stk_status status = STK_OK;
    bool is_first = true;
    (void)gethostname(host, sizeof(host) - 1);
    stk_watch_sample_init(&sample);
    while (status == STK_OK && !cli_stopped()) {
        status = stk_watch_nvml_read(nvml, true, &sample, facts);
        if (status == STK_OK) status = put(exporter, nvml, &sample, host);
        if (is_first && status == STK_OK)
            cli_printf("%d GPU%s at http://127.0.0.1:%d/metrics; Ctrl-C ends\n", nvml->n_gpus,
                       nvml->n_gpus == 1 ? "" : "s", stk_exporter_port(exporter));
        if (is_first) fflush(stdout);
        is_first = false;
        if (!cli_stopped()) nanosleep(&(struct timespec){1, 0}, NULL); /* a signal ends it */
    }
    stk_watch_sample_free(&sample);
    return status;
}

int top_serve(int port)
{
    static stk_watch_nvml nvml;
    static const stk_watch_root root;
    stk_watch_facts facts = {0};
    stk_exporter *exporter = NULL;
    int code = CLI_OK;
    cli_catch_stop();
    stk_status status = stk_watch_nvml_open(&nvml, NULL, &root, &facts);
    if (status == STK_OK && nvml.n_gpus == 0)
        code = missing(&facts);
    else if (status == STK_OK)
        status = stk_exporter_open(port, &exporter);
    if (exporter) status = serve(&nvml, &facts, exporter);
    stk_exporter_close(exporter);
    stk_watch_nvml_close(&nvml);
    stk_watch_facts_free(&facts);
    return status == STK_OK ? code : cli_fail();
}
