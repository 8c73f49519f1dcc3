/* The confusion matrix of the test: a row for each label, a column for each class given, and the pairs that are taken
 * for one another most often. See report/sections.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/sections.h"

enum {
    WIDTH = 560,
    TOP = 8,
    MOST_SIDE = 420,
    CHARACTER = 6,    /* as wide as most are */
    MOST_DRAWN = 200, /* classes; more are less than two pixels each */
    MOST_NAMED = 40,
    MOST_NAME = 16, /* characters */
    MOST_PAIRS = 10
};

typedef struct matrix {
    const json_t *rows, *names; /* names NULL: numbers */
    size_t n;
    double left, side; /* of the picture: where it begins, and a cell's width */
    int longest;       /* characters of a name, as far as they are shown */
    bool shows_counts; /* the largest count fits into a cell */
} matrix;

static double count_at(const matrix *m, size_t label, size_t given)
{
    return json_number_value(json_array_get(json_array_get(m->rows, label), given));
}

static double row_sum(const matrix *m, size_t label)
{
    double sum = 0;
    for (size_t k = 0; k < m->n; k++)
        sum += count_at(m, label, k);
    return sum;
}

static bool find_matrix(const stk_run_data *run, matrix *out)
{
    static const char *const parts[] = {"test.classes", "valid.classes", "train.classes"};
    *out = (matrix){.rows = stk_json_find(run->result, "test_confusion")};
    out->n = json_array_size(out->rows);
    for (size_t i = 0; i < out->n; i++)
        if (json_array_size(json_array_get(out->rows, i)) != out->n) return false;
    for (int i = 0; i < 3 && !out->names; i++) {
        const json_t *names = stk_json_find(run->data, parts[i]);
        if (json_array_size(names) == out->n) out->names = names;
    }
    return out->n > 1;
}

/* A class's name, or its number where it has none; longer ones are cut where `most` characters end. */
static void add_name(stk_text *out, const matrix *m, size_t i, int most)
{
    char number[24], name[4 * MOST_NAME + 8];
    const char *text = json_string_value(json_array_get(m->names, i));
    size_t n = 0;
    if (!text) {
        snprintf(number, sizeof(number), "%zu", i);
        text = number;
    }
    if (most == 0) {
        stk_html_add(out, text);
        return;
    }
    for (int k = 0; k < most && text[n]; k++) {
        int bytes = stk_character_bytes((const unsigned char *)text + n);
        n += bytes ? (size_t)bytes : 1;
    }
    snprintf(name, sizeof(name), "%.*s%s", (int)n, text, text[n] ? "…" : "");
    stk_html_add(out, name);
}

static int count_characters(const char *text)
{
    int n = 0;
    for (; *text && n <= MOST_NAME; n++) {
        int bytes = stk_character_bytes((const unsigned char *)text);
        text += bytes ? bytes : 1;
    }
    return n;
}

static void lay_out(matrix *m)
{
    char text[STK_SHORT_TEXT];
    double most = 0;
    m->longest = m->n > MOST_NAMED ? 0 : m->n > 10 ? 2 : 1;
    for (size_t i = 0; i < m->n && m->n <= MOST_NAMED; i++) {
        const char *name = json_string_value(json_array_get(m->names, i));
        int n = name ? count_characters(name) : 0;
        m->longest = n > m->longest ? n : m->longest;
    }
    m->left = 26 + CHARACTER * m->longest;
    m->side = fmin((double)MOST_SIDE / (double)m->n, 56);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->n; k++)
            most = fmax(most, count_at(m, i, k));
    stk_short_number(most, text);
    m->shows_counts = (double)(strlen(text) * CHARACTER) + 4 < m->side;
}

/* Columns' names stand upright where they are short enough, and lean otherwise. Returns where they end. */
static double add_names(stk_text *out, const matrix *m)
{
    double bottom = TOP + m->side * (double)m->n;
    bool fits = m->longest * CHARACTER + 4 < m->side;
    if (m->longest == 0) return bottom + 8;
    for (size_t i = 0; i < m->n; i++) {
        double middle = m->side * ((double)i + 0.5), x = m->left + middle;
        stk_text_add(out, "<text class=tick text-anchor=end x=%.1f y=%.1f>", m->left - 6, TOP + middle + 4);
        add_name(out, m, i, MOST_NAME);
        if (fits)
            stk_text_add(out, "</text><text class=tick text-anchor=middle x=%.1f y=%.1f>", x, bottom + 15);
        else
            stk_text_add(out, "</text><text class=tick text-anchor=end transform=\"translate(%.1f %.1f) rotate(-45)\">",
                         x + 4, bottom + 12);
        add_name(out, m, i, MOST_NAME);
        stk_text_add(out, "</text>\n");
    }
    return bottom + (fits ? 22 : 14 + 0.75 * CHARACTER * m->longest);
}

/* Its shade is its share of the label's samples; the root lets rare mistakes be seen. */
static void add_cell(stk_text *out, const matrix *m, size_t label, size_t given, double sum)
{
    double count = count_at(m, label, given), share = sum > 0 ? count / sum : 0, shade = 0.06 + 0.94 * sqrt(share);
    double side = m->side, gap = side >= 8 ? 1 : 0, x = m->left + side * (double)given, y = TOP + side * (double)label;
    char text[STK_SHORT_TEXT];
    if (!(count > 0)) return;
    stk_text_add(out, "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f fill-opacity=%.2f><title>",
                 label == given ? "cell" : "wrong", x, y, side - gap, side - gap, shade);
    add_name(out, m, label, 0);
    stk_text_add(out, " given as ");
    add_name(out, m, given, 0);
    stk_text_add(out, ": %.0f, %.1f %%</title></rect>", count, 100 * share);
    if (m->shows_counts)
        stk_text_add(out, "<text class=\"count%s\" text-anchor=middle x=%.1f y=%.1f>%s</text>",
                     shade > 0.8 ? " strong" : "", x + side / 2, y + side / 2 + 4, stk_short_number(count, text));
    stk_text_add(out, "\n");
}

static void draw(stk_text *out, const matrix *m)
{
    double width = m->side * (double)m->n;
    stk_text names = {0};
    double height = add_names(&names, m) + 20;
    stk_text_add(out,
                 "<figure><figcaption>A row for each label, a column for the class given; the stronger, the larger its "
                 "share of the row</figcaption><svg viewBox=\"0 0 %d %.0f\" role=img aria-label=\"confusion matrix\">"
                 "<rect class=back x=%.1f y=%d width=%.1f height=%.1f />\n",
                 WIDTH, height, m->left, TOP, width, width);
    stk_text_add_bytes(out, names.data, names.n);
    if (names.failed) out->failed = true;
    for (size_t i = 0; i < m->n; i++) {
        double sum = row_sum(m, i);
        for (size_t k = 0; k < m->n; k++)
            add_cell(out, m, i, k, sum);
    }
    stk_text_add(out, "<text class=tick text-anchor=middle x=%.1f y=%.1f>given</text>", m->left + width / 2,
                 height - 4);
    stk_text_add(out,
                 "<text class=tick text-anchor=middle transform=\"translate(12 %.1f) rotate(-90)\">label</text>"
                 "</svg></figure>\n",
                 TOP + width / 2);
    stk_text_free(&names);
}

typedef struct pair {
    size_t label, given;
    double count;
} pair;

/* The most frequent mistakes, most frequent first; equal ones in the classes' order. */
static int find_pairs(const matrix *m, pair out[MOST_PAIRS])
{
    int n = 0;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->n; k++) {
            pair p = {i, k, count_at(m, i, k)};
            int at = n;
            if (i == k || !(p.count > 0)) continue;
            while (at > 0 && out[at - 1].count < p.count)
                at--;
            if (at == MOST_PAIRS) continue;
            if (n < MOST_PAIRS) n++;
            memmove(&out[at + 1], &out[at], (size_t)(n - 1 - at) * sizeof(*out));
            out[at] = p;
        }
    return n;
}

static void list_pairs(stk_text *out, const matrix *m)
{
    pair pairs[MOST_PAIRS];
    int n = find_pairs(m, pairs);
    if (n == 0) {
        stk_text_add(out, "<p>No sample was given another class than its label.</p>\n");
        return;
    }
    stk_text_add(out,
                 "<table><tr><th>label</th><th>given as</th><th class=n>samples</th><th class=n>of the label's</th>"
                 "</tr>\n");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "<tr><td>");
        add_name(out, m, pairs[i].label, 0);
        stk_text_add(out, "</td><td>");
        add_name(out, m, pairs[i].given, 0);
        stk_text_add(out, "</td><td class=n>%.0f</td><td class=n>%.1f %%</td></tr>\n", pairs[i].count,
                     100 * pairs[i].count / row_sum(m, pairs[i].label));
    }
    stk_text_add(out, "</table>\n");
}

void stk_section_confusion(stk_text *out, const stk_run_data *run)
{
    matrix m;
    if (!find_matrix(run, &m)) return;
    stk_text_add(out, "<section><h2>What is taken for what</h2><div class=charts>\n");
    lay_out(&m);
    if (m.n <= MOST_DRAWN) draw(out, &m);
    stk_text_add(out, "<div><p class=dim>The mistakes of the test, the most frequent first:</p>");
    list_pairs(out, &m);
    stk_text_add(out, "</div></div></section>\n");
}
