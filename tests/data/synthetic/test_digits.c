/* The generated digits: the files, the same for any number of threads, whole or absent; and what is drawn. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/temporary.h"
#include "data/codec/image.h"
#include "data/synthetic/digits_draw.h"
#include "data/synthetic/digits_strokes.h"
#include "stoker/data/digits.h"

static char root[64];

static const char *in_root(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static stk_digits_config small_config(int n_threads)
{
    stk_digits_config config = stk_digits_config_default();
    config.n_train = 205;
    config.n_test = 20;
    config.n_threads = n_threads;
    return config;
}

/* Hash of all names and bytes under a folder of that layout; counts the files. */
static uint64_t hash_tree(const char *folder, int64_t *n_files)
{
    uint64_t hash = 0;
    stk_names names;
    assert_int_equal(stk_dir_list(folder, &names), STK_OK);
    for (size_t i = 0; i < names.n; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, names.name[i]);
        hash = stk_hash64(names.name[i], strlen(names.name[i]), hash);
        if (stk_path_is_dir(path)) {
            hash ^= hash_tree(path, n_files);
            continue;
        }
        stk_span file;
        assert_int_equal(stk_file_load(path, &file), STK_OK);
        hash = stk_hash64(file.data, file.n, hash);
        stk_file_unload(file);
        ++*n_files;
    }
    stk_names_free(&names);
    return hash;
}

static int count_temporary(void)
{
    stk_names names;
    int n = 0;
    assert_int_equal(stk_dir_list(root, &names), STK_OK);
    for (size_t i = 0; i < names.n; i++)
        n += stk_temporary_is_name(names.name[i]);
    stk_names_free(&names);
    return n;
}

static void same_files_for_any_threads(void **state)
{
    (void)state;
    uint64_t hash[3];
    const int n_threads[3] = {1, 2, 5};
    for (int i = 0; i < 3; i++) {
        char name[16];
        int64_t n_files = 0;
        snprintf(name, sizeof(name), "threads-%d/", n_threads[i]);
        stk_digits_config config = small_config(n_threads[i]);
        assert_int_equal(stk_digits_generate(in_root(name), &config, NULL, NULL), STK_OK);
        hash[i] = hash_tree(in_root(name), &n_files);
        assert_int_equal(n_files, 225);
    }
    assert_true(hash[0] == hash[1] && hash[0] == hash[2]);
    assert_int_equal(count_temporary(), 0);
}

static void classes_are_balanced(void **state)
{
    (void)state;
    stk_digits_config config = small_config(2);
    assert_int_equal(stk_digits_generate(in_root("balanced"), &config, NULL, NULL), STK_OK);
    for (int c = 0; c < 10; c++) {
        char name[64];
        stk_names names;
        snprintf(name, sizeof(name), "balanced/train/%d", c);
        assert_int_equal(stk_dir_list(in_root(name), &names), STK_OK);
        assert_int_equal(names.n, c < 5 ? 21 : 20);
        stk_names_free(&names);
    }
    stk_span file;
    uint8_t pixels[28 * 28];
    int64_t height, width;
    assert_int_equal(stk_file_load(in_root("balanced/train/3/00013.jpg"), &file), STK_OK);
    assert_int_equal(stk_image_size(file, &height, &width), STK_OK);
    assert_int_equal(height, 28);
    assert_int_equal(width, 28);
    assert_int_equal(stk_image_decode(file, 1, pixels), STK_OK);
    stk_file_unload(file);
}

static void seed_changes_the_files(void **state)
{
    (void)state;
    int64_t n = 0;
    stk_digits_config config = small_config(2);
    assert_int_equal(stk_digits_generate(in_root("seed-a"), &config, NULL, NULL), STK_OK);
    config.seed++;
    assert_int_equal(stk_digits_generate(in_root("seed-b"), &config, NULL, NULL), STK_OK);
    assert_true(hash_tree(in_root("seed-a"), &n) != hash_tree(in_root("seed-b"), &n));
}

static void existing_folder_is_refused(void **state)
{
    (void)state;
    stk_digits_config config = small_config(2);
    assert_int_equal(stk_dir_make(in_root("there")), STK_OK);
    assert_int_equal(stk_digits_generate(in_root("there"), &config, NULL, NULL), STK_OK); /* it was empty */
    assert_int_equal(stk_digits_generate(in_root("there"), &config, NULL, NULL), STK_BUSY);
    assert_non_null(strstr(stk_error_text(), "/there' already exists"));
    assert_int_equal(count_temporary(), 0);
    /* A file is in the way of the folder. */
    assert_int_equal(stk_digits_generate(in_root("there/train/0/00000.jpg/x"), &config, NULL, NULL), STK_IO);
    assert_non_null(strstr(stk_error_text(), "there/train/0/00000.jpg': a file is in the way"));
}

/* What is called as a temporary folder of before is somebody's; tests/base/test_new_file.c clears those of killed ones.
 */
static void nobodys_folder_is_cleared(void **state)
{
    (void)state;
    int64_t n_files = 0;
    stk_digits_config config = small_config(2);
    assert_int_equal(stk_dir_make(in_root("again.tmp/train/0")), STK_OK);
    assert_int_equal(stk_file_write_durably(in_root("again.tmp/train/0/00000.jpg"), "half", 4), STK_OK);
    assert_int_equal(stk_digits_generate(in_root("again"), &config, NULL, NULL), STK_OK);
    hash_tree(in_root("again"), &n_files);
    assert_int_equal(n_files, 225);
    assert_true(stk_path_exists(in_root("again.tmp/train/0/00000.jpg")));
}

/* A limit on the size of files stands for a full disk. */
static void full_disk_leaves_nothing(void **state)
{
    (void)state;
    struct rlimit old, tiny;
    stk_digits_config config = small_config(2);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tiny = old;
    tiny.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    stk_status status = stk_digits_generate(in_root("full"), &config, NULL, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, STK_IO);
    assert_non_null(strstr(stk_error_text(), "cannot write '"));
    assert_false(stk_path_exists(in_root("full")));
    assert_int_equal(count_temporary(), 0);
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    stk_digits_config config = small_config(1);
    assert_int_equal(stk_digits_generate("", &config, NULL, NULL), STK_INVALID);
    config.size = 8;
    assert_int_equal(stk_digits_generate(in_root("bad"), &config, NULL, NULL), STK_INVALID);
    config = small_config(1);
    config.quality = 0;
    assert_int_equal(stk_digits_generate(in_root("bad"), &config, NULL, NULL), STK_INVALID);
    config = small_config(1);
    config.n_train = config.n_test = 0;
    assert_int_equal(stk_digits_generate(in_root("bad"), &config, NULL, NULL), STK_INVALID);
    config = small_config(-1);
    assert_int_equal(stk_digits_generate(in_root("bad"), &config, NULL, NULL), STK_INVALID);
    assert_false(stk_path_exists(in_root("bad")));
}

typedef struct progress {
    int64_t last, total;
    bool well;
} progress;

static bool note_progress(void *user, int64_t done, int64_t total)
{
    progress *p = user;
    p->well = p->well && done >= p->last && done <= total;
    p->last = done;
    p->total = total;
    return true;
}

static void progress_ends_at_total(void **state)
{
    (void)state;
    progress p = {.well = true};
    stk_digits_config config = small_config(2);
    assert_int_equal(stk_digits_generate(in_root("progress"), &config, note_progress, &p), STK_OK);
    assert_true(p.well);
    assert_int_equal(p.last, 225);
    assert_int_equal(p.total, 225);
}

static void templates_are_well_formed(void **state)
{
    (void)state;
    for (int digit = 0; digit < 10; digit++) {
        int n;
        const stk_glyph *glyphs = stk_glyphs_of(digit, &n);
        for (int i = 0; i < n; i++) {
            assert_int_equal(glyphs[i].digit, digit);
            assert_in_range(glyphs[i].n_points, 3, STK_GLYPH_MAX_POINTS);
            assert_int_equal(glyphs[i].point[glyphs[i].n_points - 1].x, STK_PEN_UP);
        }
    }
}

/* At every size there is a light stroke on a darker ground, and it fills neither nothing nor everything. */
static void strokes_are_visible(void **state)
{
    (void)state;
    static uint8_t pixels[64 * 64];
    static float scratch[2 * 64 * 64];
    for (int size = 16; size <= 64; size *= 2)
        for (int i = 0; i < 200; i++) {
            stk_rng rng = stk_rng_make(7, 0, (uint64_t)i, 0);
            stk_digit_draw(i % 10, &rng, size, pixels, scratch);
            int n_light = 0;
            for (int j = 0; j < size * size; j++)
                n_light += pixels[j] > 80;
            assert_in_range(n_light, size * size / 50, size * size / 2);
        }
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/stk-digits-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return stk_tree_remove(root) == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_files_for_any_threads), cmocka_unit_test(classes_are_balanced),
        cmocka_unit_test(seed_changes_the_files),     cmocka_unit_test(existing_folder_is_refused),
        cmocka_unit_test(nobodys_folder_is_cleared),  cmocka_unit_test(full_disk_leaves_nothing),
        cmocka_unit_test(bad_settings_are_refused),   cmocka_unit_test(progress_ends_at_total),
        cmocka_unit_test(templates_are_well_formed),  cmocka_unit_test(strokes_are_visible),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
