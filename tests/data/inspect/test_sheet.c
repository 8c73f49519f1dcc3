/* Contact sheets: pixels come back through normalisation, labels stand below, what cannot be shown is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "data/codec/image.h"
#include "data/inspect/font.h"
#include "data/source/files.h"
#include "stoker/data/sheet.h"

/* SIDE pixels are shown SIDE * ENLARGED wide. */
enum { SIDE = 8, ENLARGED = 12, N = 5, GAP = 6, TEXT_HEIGHT = 10 };

static uint8_t pixels[N][SIDE][SIDE][3];
static int32_t labels[N] = {3, 1, 4, 1, 5};

static void fill(void)
{
    for (size_t i = 0; i < sizeof(pixels); i++)
        ((uint8_t *)pixels)[i] = (uint8_t)(i * 37 + i / 50);
}

static stk_dataset *make(stk_dtype dtype, stk_shape shape, const void *data)
{
    const stk_array_field fields[] = {{.name = "image", .dtype = dtype, .sample = shape, .data = data},
                                      {.name = "label", .dtype = STK_I32, .data = labels}};
    return stk_dataset_arrays(N, fields, 2);
}

/* The sheet's file, decoded; the caller frees it. */
static uint8_t *read_sheet(const char *path, int channels, const stk_sheet_info *info)
{
    uint8_t *bytes = NULL, *out = malloc((size_t)(info->height * info->width * channels));
    size_t capacity = 0, n;
    int64_t height, width;
    assert_non_null(out);
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    assert_int_equal(stk_image_size((stk_span){bytes, n}, &height, &width), STK_OK);
    assert_int_equal(height, info->height);
    assert_int_equal(width, info->width);
    assert_int_equal(stk_image_decode((stk_span){bytes, n}, channels, out), STK_OK);
    free(bytes);
    return out;
}

static stk_status draw(stk_dataset *dataset, const stk_sheet_config *config, stk_sheet_info *info)
{
    stk_dataset_batch(dataset, 2, false);
    stk_status status = stk_dataset_sheet(dataset, NULL, config, in_folder("sheet.png"), info);
    stk_dataset_free(dataset);
    return status;
}

static void gives_the_pixels_back(void **state)
{
    stk_sheet_info info;
    (void)state;
    for (int way = 0; way < 3; way++) {
        stk_dataset *dataset = make(STK_U8, STK_SHAPE(SIDE, SIDE, 3), pixels);
        if (way == 1) stk_dataset_apply(dataset, stk_normalize_imagenet(), NULL);
        if (way == 2)
            stk_dataset_apply(dataset, stk_cast(STK_F32), stk_scale(1 / 255.0), stk_scale(-2), stk_scale(-3), NULL);
        assert_int_equal(draw(dataset, &(stk_sheet_config){.n_columns = 3}, &info), STK_OK);
        assert_true(info.undone);
        assert_int_equal(info.n_samples, N);
        int cell_width = SIDE * ENLARGED + GAP, cell_height = SIDE * ENLARGED + TEXT_HEIGHT + GAP;
        assert_int_equal(info.width, 3 * cell_width + GAP);
        assert_int_equal(info.height, 2 * cell_height + GAP);
        uint8_t *sheet = read_sheet(in_folder("sheet.png"), 3, &info);
        for (int i = 0; i < N; i++)
            for (int y = 0; y < SIDE * ENLARGED; y++)
                for (int x = 0; x < SIDE * ENLARGED; x++) {
                    int row = GAP + i / 3 * cell_height + y, column = GAP + i % 3 * cell_width + x;
                    assert_memory_equal(sheet + (row * info.width + column) * 3, pixels[i][y / ENLARGED][x / ENLARGED],
                                        3);
                }
        free(sheet);
    }
}

/* Values of unknown range, channels first. */
static void spreads_unknown_values(void **state)
{
    static float planes[N][1][SIDE][SIDE];
    stk_sheet_info info;
    (void)state;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SIDE * SIDE; k++)
            planes[i][0][k / SIDE][k % SIDE] = -7 + 100 * (float)k / (SIDE * SIDE - 1);
    assert_int_equal(draw(make(STK_F32, STK_SHAPE(1, SIDE, SIDE), planes), NULL, &info), STK_OK);
    assert_false(info.undone);
    uint8_t *sheet = read_sheet(in_folder("sheet.png"), 1, &info);
    const uint8_t *first = sheet + GAP * info.width + GAP;
    int last = SIDE * ENLARGED - 1;
    assert_int_equal(first[0], 0);
    assert_int_equal(first[last * info.width + last], 255);
    assert_int_equal(first[ENLARGED], 4); /* 255 / 63 */
    free(sheet);
}

/* Counts the dark points of the text below picture i of one row. */
static int count_ink(const uint8_t *sheet, const stk_sheet_info *info, int i)
{
    int n = 0;
    for (int y = 0; y < TEXT_HEIGHT; y++)
        for (int x = 0; x < SIDE * ENLARGED; x++)
            n += sheet[(GAP + SIDE * ENLARGED + y) * info->width + GAP + i * (SIDE * ENLARGED + GAP) + x] == 0;
    return n;
}

static int ink_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        for (int x = 0; x < STK_FONT_WIDTH - 1; x++)
            n += __builtin_popcount(stk_font_column((unsigned char)*text, x));
    return n;
}

static void writes_labels(void **state)
{
    static const uint8_t grey[N][SIDE][SIDE];
    static const char *const numbers[N] = {"3", "1", "4", "1", "5"};
    stk_sheet_info info;
    (void)state;
    for (int way = 0; way < 2; way++) {
        stk_dataset *dataset = make(STK_U8, STK_SHAPE(SIDE, SIDE, 1), grey);
        if (way) stk_dataset_apply_to(dataset, "label", stk_one_hot(6));
        assert_int_equal(draw(dataset, NULL, &info), STK_OK);
        uint8_t *sheet = read_sheet(in_folder("sheet.png"), 1, &info);
        for (int i = 0; i < N; i++)
            assert_int_equal(count_ink(sheet, &info, i), ink_of(numbers[i]));
        free(sheet);
    }
    assert_int_not_equal(ink_of("3"), ink_of("1"));
    assert_int_equal(stk_font_count("Z\xc3\xbcrich"), 6);
    assert_int_equal(stk_font_column('\x80', 1), stk_font_column('?', 1));
}

static void refuses(void **state)
{
    static const float vectors[N][7];
    stk_sheet_info info;
    (void)state;
    assert_int_equal(draw(make(STK_F32, STK_SHAPE(7), vectors), NULL, &info), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "'image' is f32[7]"));
    stk_sheet_config other = {.field = "mask"}, many = {.n_rows = 257};
    assert_int_equal(draw(make(STK_U8, STK_SHAPE(SIDE, SIDE, 3), pixels), &other, &info), STK_NOT_FOUND);
    assert_int_equal(draw(make(STK_U8, STK_SHAPE(SIDE, SIDE, 3), pixels), &many, &info), STK_INVALID);
    stk_dataset *dataset = make(STK_U8, STK_SHAPE(SIDE, SIDE, 3), pixels);
    assert_int_equal(stk_dataset_sheet(dataset, NULL, NULL, in_folder("sheet.png"), &info), STK_INVALID);
    stk_dataset_batch(dataset, 2, false);
    assert_int_equal(stk_dataset_sheet(dataset, NULL, NULL, in_folder("made/for/it/sheet.png"), &info), STK_OK);
    assert_int_equal(stk_dataset_sheet(dataset, NULL, NULL, in_folder("made/for/it/sheet.png/x.png"), &info), STK_IO);
    assert_non_null(strstr(stk_error_text(), "sheet.png"));
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_the_pixels_back),
                                       cmocka_unit_test(spreads_unknown_values), cmocka_unit_test(writes_labels),
                                       cmocka_unit_test(refuses)};
    fill();
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
