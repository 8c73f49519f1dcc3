/* CIFAR's archives become folders of images with the same pixels; what is wrong in one is said; and what names become.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "data/archive/cifar.h"
#include "data/codec/image.h"
#include "data/source/files.h"
#include "stoker/data/download.h"

enum { N_PIXELS = 32 * 32 };

static uint8_t pixel(int record, int channel, int i)
{
    return (uint8_t)(record * 7 + channel * 61 + i * 3);
}

/* `n` records from number `first` on, of class number % n_classes; n_labels bytes before the pixels. */
static uint8_t *make_records(int first, int n, int n_labels, int n_classes, size_t *n_bytes)
{
    size_t each = (size_t)n_labels + 3 * N_PIXELS;
    uint8_t *bytes = malloc((size_t)n * each);
    assert_non_null(bytes);
    for (int r = 0; r < n; r++) {
        uint8_t *p = bytes + (size_t)r * each;
        p[0] = 19; /* CIFAR-100's group; overwritten below where there is none */
        p[n_labels - 1] = (uint8_t)((first + r) % n_classes);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < N_PIXELS; i++)
                p[n_labels + c * N_PIXELS + i] = pixel(first + r, c, i);
    }
    *n_bytes = (size_t)n * each;
    return bytes;
}

/* --- a tar in memory --- */

static stk_text tar;

static void put(const char *name, const void *bytes, size_t n)
{
    uint8_t header[512] = {0};
    unsigned sum = 0;
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011zo", n);
    header[156] = '0';
    memcpy(header + 257, "ustar\0", 6);
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    stk_text_add_bytes(&tar, header, 512);
    stk_text_add_bytes(&tar, bytes, n);
    stk_text_add_bytes(&tar, (uint8_t[512]){0}, (512 - n % 512) % 512);
}

static void put_records(const char *name, int first, int n, int n_labels, int n_classes)
{
    size_t n_bytes;
    uint8_t *bytes = make_records(first, n, n_labels, n_classes, &n_bytes);
    put(name, bytes, n_bytes);
    free(bytes);
}

static const char ten[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

/* Members in the order of the real one, which is none. */
static void make_cifar10(void)
{
    stk_text_free(&tar);
    put_records("cifar-10-batches-bin/data_batch_2.bin", 20, 20, 1, 10);
    put("cifar-10-batches-bin/readme.html", "<html>", 6);
    put_records("cifar-10-batches-bin/test_batch.bin", 100, 10, 1, 10);
    put("cifar-10-batches-bin/batches.meta.txt", ten, sizeof(ten) - 1);
    put_records("cifar-10-batches-bin/data_batch_1.bin", 0, 20, 1, 10);
}

static const stk_download_file file = {.name = "a.tar", .url = "nowhere"};
static const stk_download_set set10 = {
    .name = "c", .about = "test", .licence = "none", .file = &file, .n_files = 1, .form = STK_DOWNLOAD_CIFAR10};
static const stk_download_set set100 = {
    .name = "c", .about = "test", .licence = "none", .file = &file, .n_files = 1, .form = STK_DOWNLOAD_CIFAR100};

static stk_status get(const stk_download_set *set, const char *out)
{
    assert_int_equal(stk_text_status(&tar), STK_OK);
    write_file("mirror/a.tar", tar.data, tar.n);
    return stk_download(set, in_folder(out), in_folder("mirror"), NULL, NULL);
}

static void expect_image(const char *name, int record)
{
    uint8_t pixels[3 * N_PIXELS];
    int64_t height, width;
    stk_span png;
    assert_int_equal(stk_file_load(in_folder(name), &png), STK_OK);
    assert_int_equal(stk_image_size(png, &height, &width), STK_OK);
    assert_true(height == 32 && width == 32);
    assert_int_equal(stk_image_decode(png, 3, pixels), STK_OK);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < N_PIXELS; i++)
            assert_int_equal(pixels[3 * i + c], pixel(record, c, i));
    stk_file_unload(png);
}

static void test_cifar10(void **state)
{
    (void)state;
    stk_names names;
    make_cifar10();
    assert_int_equal(get(&set10, "c10"), STK_OK);
    expect_image("c10/train/airplane/00000.png", 0);
    expect_image("c10/train/truck/00039.png", 39);
    expect_image("c10/train/dog/00025.png", 25);
    expect_image("c10/test/cat/00003.png", 103);
    assert_int_equal(stk_dir_list(in_folder("c10/train"), &names), STK_OK);
    assert_int_equal(names.n, 10);
    stk_names_free(&names);
    assert_false(stk_path_exists(in_folder("c10.download")));
    /* Once more: it is there. As another set it is not. */
    assert_int_equal(get(&set10, "c10"), STK_OK);
    stk_download_set other = set10;
    other.name = "d";
    assert_int_equal(get(&other, "c10"), STK_BUSY);
}

static void test_cifar100(void **state)
{
    (void)state;
    stk_text names = {0};
    for (int i = 0; i < 100; i++)
        stk_text_add(&names, "class_%02d\r\n", i);
    stk_text_free(&tar);
    put("cifar-100-binary/fine_label_names.txt", names.data, names.n);
    put_records("cifar-100-binary/train.bin", 0, 120, 2, 100);
    put_records("cifar-100-binary/test.bin", 5, 3, 2, 100);
    stk_text_free(&names);
    assert_int_equal(get(&set100, "c100"), STK_OK);
    expect_image("c100/train/class_07/00107.png", 107);
    expect_image("c100/test/class_06/00001.png", 6);
}

static void expect_corrupt(const char *message)
{
    assert_int_equal(get(&set10, "bad"), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), message));
    assert_false(stk_path_exists(in_folder("bad")));
    assert_int_equal(stk_tree_remove(in_folder("bad.download")), STK_OK);
}

static void test_damage(void **state)
{
    (void)state;
    static const char up[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\n../up\n", few[] = "a\nb\n";
    make_cifar10();
    put_records("x/data_batch_3.bin", 0, 2, 1, 12); /* fine: 0 and 1 */
    put_records("x/data_batch_4.bin", 10, 2, 1, 12);
    expect_corrupt("is of class 10, and there are 10");
    make_cifar10();
    put("x/data_batch_6.bin", "short", 5);
    expect_corrupt("no whole records");
    stk_text_free(&tar);
    put_records("data_batch_1.bin", 0, 1, 1, 10);
    expect_corrupt("lacks 'batches.meta.txt'");
    put("batches.meta.txt", up, sizeof(up) - 1);
    expect_corrupt("outside of the folder");
    stk_text_free(&tar);
    put("batches.meta.txt", few, sizeof(few) - 1);
    expect_corrupt("names 2 classes, not 10");
    stk_text_free(&tar);
    put("batches.meta.txt", ten, sizeof(ten) - 1);
    expect_corrupt("no records for 'train'");
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n_strip;
        const char *want; /* NULL: refused */
    } cases[] = {{"a/b.txt", 0, "a/b.txt"},
                 {"./a//b.txt", 0, "a/b.txt"},
                 {"top/a/b", 1, "a/b"},
                 {"./top/a/b", 1, "a/b"},
                 {"top", 1, ""},
                 {"a/", 0, ""},
                 {"a/.git/x", 0, ""},
                 {"__MACOSX/x", 0, ""},
                 {"a..b/c...", 0, "a..b/c..."},
                 {"..", 0, NULL},
                 {"a/../b", 0, NULL},
                 {"../a", 1, NULL},
                 {"/a", 0, NULL},
                 {"a\\b", 0, NULL},
                 {"a\x7f", 0, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[STK_ARCHIVE_NAME];
        stk_status status = stk_archive_safe_name(cases[i].name, cases[i].n_strip, out);
        assert_int_equal(status, cases[i].want ? STK_OK : STK_CORRUPT);
        if (cases[i].want) assert_string_equal(out, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cifar10), cmocka_unit_test(test_cifar100),
                                       cmocka_unit_test(test_damage), cmocka_unit_test(test_names)};
    int failed = cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
    stk_text_free(&tar);
    return failed;
}
