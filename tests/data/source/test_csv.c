/* Tables: cells as Python's csv module has them, numbers rounded once, fields of columns, and errors that name file,
 * line and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/csv.h"
#include "data/source/files.h"
#include "golden/csv_golden.h"
#include "stoker/data/loader.h"

static stk_scratch scratch[STK_MAX_FIELDS];

static const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

static stk_status open_table(const char *path, stk_csv_config config, stk_source **out)
{
    *out = NULL;
    return stk_source_open_csv(&path, 1, &config, out);
}

static stk_source *open_good(const char *path, stk_csv_config config)
{
    stk_source *source;
    if (open_table(path, config, &source) != STK_OK) fail_msg("%s", stk_error_text());
    return source;
}

#define FIELDS(...)                                                                                                    \
    .fields = (const stk_csv_field[]){__VA_ARGS__},                                                                    \
    .n_fields = sizeof((stk_csv_field[]){__VA_ARGS__}) / sizeof(stk_csv_field)
#define COLUMNS(...)                                                                                                   \
    .columns = (const char *const[]){__VA_ARGS__}, .n_columns = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)

static void cells_as_python_has_them(void **state)
{
    (void)state;
    const char *path = write_text("g.csv", golden_table);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        stk_source *source = open_good(path, (stk_csv_config){FIELDS({.name = "d", .kind = STK_CSV_TEXT, COLUMNS("3")},
                                                                     {.name = "a", .kind = STK_CSV_TEXT, COLUMNS("0")},
                                                                     {.name = "c", .kind = STK_CSV_TEXT, COLUMNS("2")},
                                                                     {.name = "b", .kind = STK_CSV_TEXT, COLUMNS("1")}),
                                                              .no_header = true, .in_memory = in_memory});
        static const int column[4] = {3, 0, 2, 1};
        assert_int_equal(source->n_records, 60);
        for (int i = 0; i < 60; i++) {
            stk_item item[STK_MAX_FIELDS];
            assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
            for (int f = 0; f < 4; f++) {
                const char *want = golden_cells[i][column[f]];
                assert_int_equal(item[f].n_bytes, strlen(want));
                assert_int_equal(item[f].type.desc.shape.dim[0], strlen(want));
                assert_memory_equal(item[f].data, want, strlen(want));
            }
        }
        source->class->close(source);
    }
}

static void numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_numbers) / sizeof(golden_numbers[0]); i++) {
        stk_span cell = {(const uint8_t *)golden_numbers[i].text, strlen(golden_numbers[i].text)};
        uint64_t f64;
        uint32_t f32;
        assert_int_equal(stk_csv_number(cell, STK_F64, &f64), STK_OK);
        assert_int_equal(stk_csv_number(cell, STK_F32, &f32), STK_OK);
        if (f64 != golden_numbers[i].f64) fail_msg("'%s' as f64", golden_numbers[i].text);
        if (f32 != golden_numbers[i].f32) fail_msg("'%s' as f32", golden_numbers[i].text);
    }
    static const struct {
        const char *text;
        stk_dtype dtype;
        bool good;
        int64_t value;
    } cases[] = {
        {"127", STK_I8, true, 127},
        {"128", STK_I8, false, 0},
        {"-128", STK_I8, true, -128},
        {"-129", STK_I8, false, 0},
        {"255", STK_U8, true, 255},
        {"256", STK_U8, false, 0},
        {"-1", STK_U8, false, 0},
        {"+2147483647", STK_I32, true, 2147483647},
        {"2147483648", STK_I32, false, 0},
        {"9223372036854775807", STK_I64, true, INT64_MAX},
        {"-9223372036854775808", STK_I64, true, INT64_MIN},
        {"9223372036854775808", STK_I64, false, 0},
        {"1.0", STK_I64, false, 0},
        {"", STK_I64, false, 0},
        {"-", STK_I64, false, 0},
        {"True", STK_BOOL, true, 1},
        {"false", STK_BOOL, true, 0},
        {"1", STK_BOOL, true, 1},
        {"2", STK_BOOL, false, 0},
        {"yes", STK_BOOL, false, 0},
        {"", STK_F32, false, 0},
        {"1,5", STK_F32, false, 0},
        {"0x10", STK_F32, false, 0},
        {"1 2", STK_F64, false, 0},
        {"one", STK_F64, false, 0},
        {".", STK_F64, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t whole = 0;
        stk_span cell = {(const uint8_t *)cases[i].text, strlen(cases[i].text)};
        stk_status status = stk_csv_number(cell, cases[i].dtype, &whole);
        if ((status == STK_OK) != cases[i].good) fail_msg("'%s' as %s", cases[i].text, stk_dtype_name(cases[i].dtype));
        int64_t got = cases[i].dtype == STK_I8 ? (int8_t)whole : cases[i].dtype == STK_I32 ? (int32_t)whole : whole;
        if (cases[i].good) assert_int_equal(got, cases[i].value);
    }
}

static void columns_and_classes(void **state)
{
    (void)state;
    write_text(
        "f/a.csv",
        "\xef\xbb\xbfid,x,y,kind,note\r\n1,0.5,,\"b, big\",\"two\nlines\"\r\n\r\n2,NA,3,a,\"say \"\"hi\"\"\"\r\n");
    write_text("f/b.csv", "id,x,y,kind,note\n\n3,-1e2,4,a,\n\n\n");
    write_text("f/c.csv", "id,x,y,kind,note\n");
    stk_source *source = open_good(
        in_folder("f/*.csv"), (stk_csv_config){FIELDS({.name = "features", COLUMNS("y", "x"), .default_value = "7"},
                                                      {.name = "label", .kind = STK_CSV_CLASS, COLUMNS("kind")},
                                                      {.name = "id", .dtype = STK_I64, COLUMNS("id")},
                                                      {.name = "note", .kind = STK_CSV_TEXT, COLUMNS("note")}),
                                               .missing = "NA"});
    static const float features[3][2] = {{7, 0.5f}, {3, 7}, {4, -100}};
    static const char *const notes[3] = {"two\nlines", "say \"hi\"", ""};
    static const int32_t labels[3] = {1, 0, 0};
    assert_int_equal(source->n_records, 3);
    assert_int_equal(source->n_classes, 2);
    assert_string_equal(source->class_names[1], "b, big");
    assert_true(stk_shape_equal(source->field[0].type.desc.shape, STK_SHAPE(2)));
    assert_int_equal(source->field[2].type.desc.shape.rank, 0);
    for (int i = 0; i < 3; i++) {
        stk_item item[STK_MAX_FIELDS];
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_memory_equal(item[0].data, features[i], 8);
        assert_memory_equal(item[1].data, &labels[i], 4);
        assert_int_equal(*(int64_t *)item[2].data, i + 1);
        assert_int_equal(item[3].n_bytes, strlen(notes[i]));
        assert_memory_equal(item[3].data, notes[i], strlen(notes[i]));
    }
    char name[256];
    source->class->name_record(source, 1, name, sizeof(name));
    assert_non_null(strstr(name, "a.csv', line 5"));
    source->class->name_record(source, 2, name, sizeof(name));
    assert_non_null(strstr(name, "b.csv', line 3"));
    source->class->close(source);
}

static void tab_and_quotes_as_they_are(void **state)
{
    (void)state;
    stk_source *source = open_good(write_text("t.tsv", "\"a\t1\n\"\"\t0\nplain \"x\"\t1"),
                                   (stk_csv_config){FIELDS({.name = "text", .kind = STK_CSV_TEXT, COLUMNS("0")},
                                                           {.name = "label", .dtype = STK_I32, COLUMNS("1")}),
                                                    .delimiter = '\t', .no_header = true, .no_quotes = true});
    static const char *const want[] = {"\"a", "\"\"", "plain \"x\""};
    assert_int_equal(source->n_records, 3);
    for (int i = 0; i < 3; i++) {
        stk_item item[STK_MAX_FIELDS];
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_int_equal(item[0].n_bytes, strlen(want[i]));
        assert_memory_equal(item[0].data, want[i], strlen(want[i]));
    }
    source->class->close(source);
}

static void bad_rows(void **state)
{
    (void)state;
    const char *path = write_text("bad.csv", "a,b\n1,2\n3\n4,5,6\nx,7\n,8\n\"9\"x,1\n10,11\n");
    stk_source *source = open_good(path, (stk_csv_config){FIELDS({.name = "a", .dtype = STK_I32, COLUMNS("a")})});
    static const char *const text[] = {NULL,
                                       "has 1 cell, the first one of its kind 2",
                                       "has 3 cells",
                                       "column 'a': 'x' is no whole number",
                                       "column 'a': the cell is empty, and the field has no default",
                                       "cell 1 goes on after its last quote",
                                       NULL};
    assert_int_equal(source->n_records, 7);
    for (int i = 0; i < 7; i++) {
        stk_item item[STK_MAX_FIELDS];
        stk_status status = source->class->read(source, i, scratch, item);
        assert_int_equal(status, text[i] ? STK_CORRUPT : STK_OK);
        if (text[i] && !strstr(stk_error_text(), text[i])) fail_msg("row %d: %s", i, stk_error_text());
    }
    source->class->close(source);
    /* The loader's message has it all. */
    stk_csv_config config = {FIELDS({.name = "a", .dtype = STK_I32, COLUMNS("a")})};
    stk_dataset *dataset = stk_dataset_csv(&path, 1, &config);
    stk_dataset_skip(dataset, 3);
    stk_dataset_batch(dataset, 1, true);
    stk_loader_config loader_config = stk_loader_config_default();
    stk_loader *loader = NULL;
    assert_int_equal(stk_loader_open(dataset, &loader_config, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    if (!strstr(stk_error_text(), "bad.csv', line 5: column 'a': 'x' is no whole number"))
        fail_msg("%s", stk_error_text());
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    /* A class that is not among those given. */
    source = open_good(path, (stk_csv_config){FIELDS({.name = "label",
                                                      .kind = STK_CSV_CLASS,
                                                      COLUMNS("b"),
                                                      .classes = (const char *const[]){"7", "11"},
                                                      .n_classes = 2})});
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, 0, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "'2' is none of its 2 classes"));
    assert_int_equal(source->class->read(source, 6, scratch, item), STK_OK);
    assert_int_equal(*(int32_t *)item[0].data, 0);
    source->class->close(source);
}

static void bad_tables(void **state)
{
    (void)state;
    stk_source *source;
    const char *path = write_text("o.csv", "alpha,beta\n1,2\n");
    const struct {
        stk_csv_field field;
        stk_status status;
        const char *text;
    } cases[] = {
        {{.name = "x", COLUMNS("alhpa")}, STK_NOT_FOUND, "did you mean 'alpha'?"},
        {{.name = "x", COLUMNS("zzzzzz")}, STK_NOT_FOUND, "no column 'zzzzzz'"},
        {{.name = "x"}, STK_INVALID, "no columns"},
        {{COLUMNS("alpha")}, STK_INVALID, "name"},
        {{.name = "x", COLUMNS("alpha"), .dtype = STK_F16}, STK_UNSUPPORTED, "f16"},
        {{.name = "x", COLUMNS("alpha", "beta"), .kind = STK_CSV_TEXT}, STK_INVALID, "only numbers"},
        {{.name = "x", COLUMNS("alpha"), .dtype = STK_I32, .default_value = "0.5"}, STK_INVALID, "default '0.5'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_status status = open_table(path, (stk_csv_config){.fields = &cases[i].field, .n_fields = 1}, &source);
        if (status != cases[i].status || !strstr(stk_error_text(), cases[i].text))
            fail_msg("case %zu: %s", i, stk_error_text());
    }
    stk_csv_config config = {FIELDS({.name = "x", .dtype = STK_F32, COLUMNS("alpha")})};
    assert_int_equal(open_table(path, (stk_csv_config){0}, &source), STK_INVALID);
    assert_int_equal(open_table(write_text("h.csv", "alpha,beta\n"), config, &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "no row but that of names"));
    assert_int_equal(open_table(write_text("q.csv", "alpha\n1\n\"two\n"), config, &source), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "quoted cell of row 3, which begins at byte 8, does not end"));
    write_text("m/1.csv", "alpha\n1\n");
    write_text("m/2.csv", "beta\n1\n");
    assert_int_equal(open_table(in_folder("m/*.csv"), config, &source), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "2.csv"));
    config.delimiter = '"';
    assert_int_equal(open_table(path, config, &source), STK_INVALID);
}

/* Quoted rows across the blocks in which a file is scanned, and an index that is used again. */
static void large_table(void **state)
{
    (void)state;
    enum { N = 60000 };
    char *text = malloc((size_t)N * 40);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(text + n, "%d,\"a \"\"%d\"\"\n, b\"\r\n", i, i);
    const char *path = write_file("big.csv", text, n);
    free(text);
    for (int round = 0; round < 2; round++) {
        stk_source *source = open_good(path, (stk_csv_config){FIELDS({.name = "n", .dtype = STK_I32, COLUMNS("0")},
                                                                     {.name = "t", .kind = STK_CSV_TEXT, COLUMNS("1")}),
                                                              .no_header = true});
        assert_int_equal(source->n_records, N);
        for (int i = 0; i < N; i += 7) {
            stk_item item[STK_MAX_FIELDS];
            char want[64];
            snprintf(want, sizeof(want), "a \"%d\"\n, b", i);
            assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
            assert_int_equal(*(int32_t *)item[0].data, i);
            assert_int_equal(item[1].n_bytes, strlen(want));
            assert_memory_equal(item[1].data, want, strlen(want));
        }
        source->class->close(source);
    }
    assert_true(stk_path_exists(in_folder("big.csv.stkidx")));
}

/* The bound is 2^20; one more is refused. */
static void classes_are_bounded(void **state)
{
    enum { MOST = 1 << 20, BYTES = 8 };
    (void)state;
    char *text = malloc((MOST + 1) * BYTES + 1);
    assert_non_null(text);
    for (int i = 0; i <= MOST; i++)
        snprintf(text + (size_t)i * BYTES, BYTES + 1, "%07u\n", (unsigned)i % 10000000);
    stk_csv_config config = {FIELDS({.name = "label", .kind = STK_CSV_CLASS, COLUMNS("0")}), .no_header = true};
    stk_source *source = open_good(write_file("most.csv", text, (size_t)MOST * BYTES), config);
    assert_int_equal(source->n_classes, MOST);
    source->class->close(source);
    stk_status status = open_table(write_file("more.csv", text, (size_t)(MOST + 1) * BYTES), config, &source);
    free(text);
    assert_int_equal(status, STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "more than 1048576 classes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_as_python_has_them),
        cmocka_unit_test(numbers),
        cmocka_unit_test(columns_and_classes),
        cmocka_unit_test(classes_are_bounded),
        cmocka_unit_test(tab_and_quotes_as_they_are),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(bad_tables),
        cmocka_unit_test(large_table),
    };
    int n_failed = cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
    free_scratch(scratch);
    return n_failed;
}
