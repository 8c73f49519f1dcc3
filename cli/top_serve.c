/* stoker top --serve: the GPUs' numbers for Prometheus, read once a second until Ctrl-C. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "events/exporter.h"
#include "top.h"
#include "watch/dcgm.h"
#include "watch/driver.h"

static int missing(const stk_watch_facts *facts)
{
    const char *why = stk_watch_facts_get(facts, "missing", 0);
    cli_error("there is no GPU to tell of: %s",
              why ? cli_shown(why) : "NVIDIA's driver does not answer (does nvidia-smi hang, too?)");
    return CLI_FAILED;
}

/* The numbers as read; from a driver that does not answer there are none, and when it did last is told. */
static stk_status put(stk_exporter *exporter, stk_watch_driver *driver, const stk_watch_sample *sample,
                      const char *host, time_t read)
{
    const stk_watch_gpu_label *label;
    stk_text text = {0};
    int n = stk_watch_driver_labels(driver, &label);
    stk_watch_dcgm_add(&text, label, n, sample, host);
    stk_text_add(&text,
                 "# HELP stoker_gpus_read_timestamp_seconds When the driver told the GPUs' numbers last.\n"
                 "# TYPE stoker_gpus_read_timestamp_seconds gauge\nstoker_gpus_read_timestamp_seconds %lld\n",
                 (long long)read);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) status = stk_exporter_put(exporter, &text);
    stk_text_free(&text);
    return status;
}

static stk_status serve(stk_watch_driver *driver, stk_watch_facts *facts, int port)
{
    char host[256] = "";
    const stk_watch_gpu_label *label;
    stk_watch_sample sample;
    stk_exporter *exporter = NULL;
    int n = stk_watch_driver_labels(driver, &label);
    time_t read = time(NULL);
    (void)gethostname(host, sizeof(host) - 1);
    stk_watch_sample_init(&sample);
    stk_status status = stk_exporter_open(port, &exporter);
    for (bool is_first = true; status == STK_OK && !cli_stopped(); is_first = false) {
        status = stk_watch_driver_read(driver, true, &sample, facts);
        if (sample.gpus.n > 0) read = time(NULL);
        if (status == STK_OK) status = put(exporter, driver, &sample, host, read);
        if (is_first && status == STK_OK)
            cli_printf("%d GPU%s at http://127.0.0.1:%d/metrics; Ctrl-C ends\n", n, n == 1 ? "" : "s",
                       stk_exporter_port(exporter));
        if (is_first) fflush(stdout);
        if (!cli_stopped()) nanosleep(&(struct timespec){1, 0}, NULL); /* a signal ends it */
    }
    stk_exporter_close(exporter);
    stk_watch_sample_free(&sample);
    return status;
}

int top_serve(int port)
{
    static const stk_watch_root root;
    const stk_watch_gpu_label *label;
    stk_watch_facts facts = {0};
    stk_watch_driver *driver;
    int code = CLI_OK;
    cli_catch_stop();
    stk_status status = stk_watch_driver_open(&driver, NULL, &root, &facts);
    if (status == STK_OK && stk_watch_driver_labels(driver, &label) == 0)
        code = missing(&facts);
    else if (status == STK_OK)
        status = serve(driver, &facts, port);
    stk_watch_driver_close(driver);
    stk_watch_facts_free(&facts);
    return status == STK_OK ? code : cli_fail();
}
