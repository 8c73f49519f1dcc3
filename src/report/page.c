/* The page: style, title, what to change next, and the sections. See stoker/observe/report.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "recipe/recipe.h"
#include "report/advice.h"
#include "report/chart.h"
#include "report/sections.h"
#include "report/style.h"
#include "stoker/observe/report.h"

/* The mark of such pages, too: others are not replaced. */
#define BEGIN                                                                                                          \
    "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "                                      \
    "content=\"width=device-width\"><title>"

static void add_title(stk_text *out, const stk_run_data *run, int n)
{
    stk_text_add(out, "%s", BEGIN);
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "%s", i ? " and " : "");
        stk_html_add(out, stk_run_data_name(&run[i]));
    }
    stk_text_add(out,
                 "</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
                 "'unsafe-inline'; script-src 'sha256-%s'\"><style>%s</style></head><body><header><h1>",
                 stk_report_script_sum, stk_report_style);
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "%s", i ? ", " : "");
        stk_html_add(out, stk_run_data_name(&run[i]));
    }
    stk_text_add(out, "</h1>");
    for (int i = 0; i < n; i++) {
        const json_t *p = run[i].profile;
        if (!p) continue;
        stk_text_add(out, "<p class=sub>");
        stk_html_add(out, n > 1 ? stk_run_data_name(&run[i]) : "");
        stk_text_add(out, "%s", n > 1 ? ": " : "");
        stk_html_add(out, stk_json_text(p, "model"));
        stk_text_add(out, " on ");
        stk_html_add(out, stk_json_text(p, "machine.device"));
        stk_text_add(out, " (");
        stk_html_add(out, stk_json_text(p, "machine.about"));
        char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT], c[STK_SHORT_TEXT];
        stk_text_add(out, "), ");
        stk_html_add(out, stk_json_text(p, "precision"));
        stk_text_add(out, ", batch %s, %s of %s steps</p>", stk_short_number(stk_json_number(p, "batch"), a),
                     stk_short_number(stk_json_number(p, "step_number"), b),
                     stk_short_number(stk_json_number(p, "n_steps"), c));
    }
    stk_text_add(out, "</header>\n");
}

static void add_advice(stk_text *out, const stk_run_data *run, int n)
{
    stk_text_add(out, "<section class=next><h2>What to change next</h2>\n");
    for (int i = 0; i < n; i++) {
        if (n > 1) {
            stk_text_add(out, "<h3>");
            stk_html_add(out, stk_run_data_name(&run[i]));
            stk_text_add(out, "</h3>");
        }
        stk_text_add(out, "<ul>\n");
        stk_advice_add(out, &run[i]);
        stk_text_add(out, "</ul>\n");
    }
    stk_text_add(out, "</section>\n");
}

/* False: it cannot be read. Where that is for want of memory out fails. */
static bool read_recipe(const stk_run_data *run, stk_recipe **recipe, stk_text *out)
{
    char path[4096];
    stk_status status = stk_path_join(path, sizeof(path), run->folder, "recipe.yaml");
    if (status == STK_OK) status = stk_recipe_read(path, NULL, 0, recipe);
    if (status == STK_NO_MEMORY) out->failed = true;
    return status == STK_OK;
}

/* The recipes' differences, of each run from the first. */
static void add_differences(stk_text *out, const stk_run_data *run, int n)
{
    stk_recipe *first = NULL, *other = NULL;
    if (n < 2 || !read_recipe(&run[0], &first, out)) return;
    stk_text_add(out, "<section><h2>What differs</h2><table>\n");
    for (int i = 1; i < n; i++) {
        stk_text differences = {0};
        if (!read_recipe(&run[i], &other, out)) continue;
        stk_recipe_compare(first, other, &differences);
        if (differences.failed) out->failed = true;
        stk_text_add(out, "<tr><td>");
        stk_html_add(out, stk_run_data_name(&run[i]));
        stk_text_add(out, "</td><td>");
        stk_html_add(out, differences.n ? stk_text_get(&differences) : "the same recipe");
        stk_text_add(out, "</td></tr>\n");
        stk_text_free(&differences);
        stk_recipe_free(other);
        other = NULL;
    }
    stk_text_add(out, "</table></section>\n");
    stk_recipe_free(first);
}

static stk_status make_page(stk_text *out, const stk_run_data *run, int n)
{
    add_title(out, run, n);
    add_advice(out, run, n);
    stk_section_summary(out, run, n);
    add_differences(out, run, n);
    STK_RETURN_IF_ERROR(stk_section_curves(out, run, n));
    stk_section_time(out, run, n);
    STK_RETURN_IF_ERROR(stk_section_difference(out, run, n));
    for (int i = 0; i < n; i++) {
        if (n > 1) {
            stk_text_add(out, "<h1 style=\"margin-top:44px;font-size:22px\"><i style=\"background:var(--s%d)\"></i>",
                         i);
            stk_html_add(out, stk_run_data_name(&run[i]));
            stk_text_add(out, "</h1>\n");
        }
        stk_section_confusion(out, &run[i]);
        stk_section_input(out, &run[i]);
        stk_section_memory(out, &run[i]);
        stk_section_kernels(out, &run[i]);
        STK_RETURN_IF_ERROR(stk_section_critical(out, &run[i]));
        stk_section_machine(out, &run[i]);
    }
    stk_text_add(out, "<script>%s</script></body></html>\n", stk_report_script);
    return stk_text_status(out);
}

stk_status stk_report_write(const char *const *folder, int n_folders, const char *path)
{
    stk_run_data run[STK_MOST_REPORTED] = {{0}};
    stk_text out = {0};
    stk_status status;
    if (n_folders < 1 || n_folders > STK_MOST_REPORTED)
        return stk_fail(STK_INVALID, "a report is of 1 to %d runs, not %d", STK_MOST_REPORTED, n_folders);
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a page of 'stoker report'", 0, BEGIN, 60));
    for (int i = 0; i < n_folders; i++)
        STK_TRY(stk_run_data_read(folder[i], &run[i]));
    STK_TRY(stk_dir_check_for(path));
    STK_TRY(make_page(&out, run, n_folders));
    STK_TRY(stk_file_write_durably(path, out.data, out.n));
done:
    for (int i = 0; i < n_folders; i++)
        stk_run_data_free(&run[i]);
    stk_text_free(&out);
    return status;
}
