/* Verifying: whole files pass, damage anywhere in a JPEG is found and named, for any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/codec/image.h"
#include "data/source/files.h"
#include "stoker/data/combine.h"
#include "stoker/data/sources.h"
#include "stoker/data/verify.h"

enum { N = 60, SIDE = 64 };

static uint8_t *encoded[N];
static size_t n_encoded[N];

static int make_photos(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        for (size_t k = 0; k < sizeof(pixels); k++)
            pixels[k] = (uint8_t)(k / 3 % SIDE * 3 + k / (3 * SIDE) * (size_t)(i + 1));
        if (stk_jpeg_encode(pixels, SIDE, SIDE, 3, 90, &encoded[i], &n_encoded[i]) != STK_OK) return -1;
    }
    return 0;
}

static int end(void **state)
{
    for (int i = 0; i < N; i++)
        free(encoded[i]);
    return remove_test_folder(state);
}

static void write_photos(const char *folder)
{
    for (int i = 0; i < N; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s/%03d.jpg", folder, i);
        write_file(name, encoded[i], n_encoded[i]);
    }
}

/* What was reported. */
typedef struct seen {
    int n;
    int64_t i_record[N], offset[N];
    char file[N][256], reason[N][256];
} seen;

static void keep(void *user, const stk_corrupt_record *r)
{
    seen *s = user;
    s->i_record[s->n] = r->i_record;
    s->offset[s->n] = r->offset_bytes;
    snprintf(s->file[s->n], 256, "%s", r->file ? r->file : "?");
    snprintf(s->reason[s->n++], 256, "%s", r->reason);
}

static stk_status verify(stk_dataset *dataset, int n_threads, seen *s, stk_verify_progress *p)
{
    stk_verify_options options = {.n_threads = n_threads, .on_corrupt = keep, .user = s};
    *s = (seen){0};
    stk_status status = stk_dataset_verify(dataset, &options, p);
    stk_dataset_free(dataset);
    return status;
}

static stk_dataset *open_folder(const char *name)
{
    const char *path = in_folder(name);
    return stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
}

static void passes_whole_files(void **state)
{
    seen s;
    stk_verify_progress p;
    size_t bytes = 0;
    (void)state;
    write_photos("whole");
    for (int i = 0; i < N; i++)
        bytes += n_encoded[i];
    assert_int_equal(verify(open_folder("whole"), 2, &s, &p), STK_OK);
    assert_int_equal(s.n, 0);
    assert_int_equal(p.n_done, N);
    assert_int_equal(p.n_bytes, bytes);
}

static void finds_damage(void **state)
{
    (void)state;
    write_photos("bad");
    /* Cut short by two bytes and by half; a stuffed marker in the last rows; no image; empty. */
    write_file("bad/003.jpg", encoded[3], n_encoded[3] - 2);
    write_file("bad/010.jpg", encoded[10], n_encoded[10] / 2);
    uint8_t *copy = malloc(n_encoded[20]);
    assert_non_null(copy);
    memcpy(copy, encoded[20], n_encoded[20]);
    memcpy(copy + n_encoded[20] - 12, "\xff\xd3", 2);
    write_file("bad/020.jpg", copy, n_encoded[20]);
    free(copy);
    write_file("bad/040.jpg", "hello", 5);
    write_file("bad/059.jpg", "", 0);
    static const int64_t bad[] = {3, 10, 20, 40, 59};
    for (int n_threads = 1; n_threads < 9; n_threads += 7) {
        seen s;
        stk_verify_progress p;
        assert_int_equal(verify(open_folder("bad"), n_threads, &s, &p), STK_CORRUPT);
        assert_non_null(strstr(stk_error_text(), "5 of 60"));
        assert_int_equal(s.n, 5);
        assert_int_equal(p.n_corrupt, 5);
        for (int i = 0; i < 5; i++) {
            char name[64];
            snprintf(name, sizeof(name), "bad/%03d.jpg", (int)bad[i]);
            assert_int_equal(s.i_record[i], bad[i]);
            assert_string_equal(s.file[i], in_folder(name));
            assert_int_equal(s.offset[i], -1);
        }
        assert_string_equal(s.reason[1], "truncated JPEG");
        assert_string_equal(s.reason[3], "not a JPEG, PNG or WebP file");
        assert_string_equal(s.reason[4], "an empty file");
    }
}

/* All records of both data sets, and the numbers of records are their own. */
static void verifies_all_of_several(void **state)
{
    (void)state;
    write_photos("a");
    write_photos("b");
    write_file("a/002.jpg", "hello", 5);
    write_file("b/001.jpg", encoded[1], n_encoded[1] / 2);
    seen s;
    stk_verify_progress p;
    stk_dataset *pair[] = {open_folder("a"), open_folder("b")};
    stk_dataset_take(pair[1], 1);
    assert_int_equal(verify(stk_dataset_concatenate(pair, 2), 2, &s, &p), STK_CORRUPT);
    assert_int_equal(p.n_done, 2 * N);
    assert_int_equal(p.n_records, 2 * N);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.i_record[0], 2);
    assert_string_equal(s.file[0], in_folder("a/002.jpg"));
    assert_int_equal(s.i_record[1], 1);
    assert_string_equal(s.file[1], in_folder("b/001.jpg"));
}

static bool stop(void *user, const stk_verify_progress *p)
{
    (void)user;
    return p->n_done < 0;
}

static stk_status slow(void *user, int64_t i, void *const *out)
{
    (void)user;
    (void)out;
    usleep(1000);
    return i < 0 ? STK_CORRUPT : STK_OK;
}

static void stops(void **state)
{
    stk_verify_options options = {.n_threads = 2, .on_progress = stop};
    stk_verify_progress p;
    const stk_array_field field = {.name = "x", .dtype = STK_U8, .sample = {0}};
    (void)state;
    stk_dataset *dataset = stk_dataset_function(1000000, &field, 1, slow, NULL);
    assert_int_equal(stk_dataset_verify(dataset, &options, &p), STK_INTERRUPTED);
    assert_true(p.n_done < p.n_records);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes_whole_files), cmocka_unit_test(finds_damage),
                                       cmocka_unit_test(verifies_all_of_several), cmocka_unit_test(stops)};
    return cmocka_run_group_tests(tests, make_photos, end);
}
