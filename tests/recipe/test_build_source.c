/* Every kind of source from a recipe: short forms, fields, class labels, paths and patterns; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zlib.h>

#include "data/common/side_file.h"
#include "data/source/files.h"
#include "data/source/source_list.h"
#include "golden/npy_golden.h"
#include "golden/tar_golden.h"
#include "golden/tfrecord_golden.h"
#include "recipe/build.h"
#include "stoker/data/sources.h"

/* A recipe with that source for training, its data found. NULL after an error. */
static stk_recipe *read_recipe(const char *source)
{
    char text[2048], path[512];
    stk_recipe *recipe;
    snprintf(text, sizeof(text), "data: {train: {source: %s}}\nmodel: {mlp: {classes: 10}}\nbatch: 2\n", source);
    snprintf(path, sizeof(path), "%s/recipe.yaml", test_folder);
    if (stk_recipe_parse(path, text, strlen(text), NULL, 0, &recipe) != STK_OK) return NULL;
    if (stk_recipe_find_data(recipe) == STK_OK) return recipe;
    stk_recipe_free(recipe);
    return NULL;
}

/* Checks the count and the types of fields "image" (without one when image is "") and "label". */
static void expect(const char *source, int64_t n, const char *image, const char *label)
{
    stk_dataset *dataset;
    char text[STK_SHAPE_TEXT_BYTES];
    const char *const names[] = {"image", "label"}, *const wanted[] = {image, label};
    stk_recipe *recipe = read_recipe(source);
    if (!recipe) fail_msg("%s: %s", source, stk_error_text());
    stk_status status = stk_build_dataset(recipe, STK_PART_TRAIN, &dataset);
    if (status != STK_OK) fail_msg("%s: %s", source, stk_error_text());
    assert_int_equal(stk_dataset_count(dataset), n);
    for (int i = 0; i < 2; i++) {
        stk_tensor_desc desc;
        if (!wanted[i][0]) continue;
        assert_int_equal(stk_dataset_field(dataset, names[i], false, &desc.dtype, &desc.shape), STK_OK);
        assert_string_equal(stk_desc_text(desc, text), wanted[i]);
    }
    stk_dataset_free(dataset);
    /* What is printed means the same. */
    stk_text printed = {0};
    stk_recipe *again;
    stk_recipe_print(recipe, &printed);
    assert_int_equal(stk_recipe_parse("printed", printed.data, printed.n, NULL, 0, &again), STK_OK);
    stk_text difference = {0};
    assert_int_equal(stk_recipe_compare(recipe, again, &difference), 0);
    stk_text_free(&difference);
    stk_text_free(&printed);
    stk_recipe_free(again);
    stk_recipe_free(recipe);
}

static void every_kind_of_source(void **state)
{
    (void)state;
    expect("{npy: x.npy}", 4, "f32[3,2]", "");
    expect("{npy: {image: x.npy, label: y.npy}}", 4, "f32[3,2]", "i32[]");
    expect("{npy: {image: 'xy.npz:x', label: 'xy.npz:y'}}", 4, "f32[3,2]", "i32[]");
    expect("{volumes: {fields: {image: x.npy, label: {files: x.npy, dtype: f32}}, window: [2, 3, 1], windows: grid}}",
           4, "f32[2,3,1,1]", "f32[2,3,1,1]");
    expect("{tfrecord: {files: a.tfrecord, parse_example: {image: {shape: [3, 2], dtype: u8}, label: i64}}}", 5,
           "u8[3,2]", "i32[]");
    expect("{tfrecord: {files: ['[ab].tfrecord', a.tfrecord], parse_example: {image: {dtype: f32, shape: [3], key: "
           "score}, "
           "label: {dtype: i32, key: absent, default: -3}}}}",
           15, "f32[3]", "i32[]");
}

static void expect_encoded(const char *source, int64_t n, bool has_label, int64_t n_classes)
{
    stk_dataset *dataset;
    stk_dtype dtype;
    stk_shape shape;
    stk_recipe *recipe = read_recipe(source);
    if (!recipe) fail_msg("%s: %s", source, stk_error_text());
    const stk_yaml_node *node = recipe->part[STK_PART_TRAIN].source;
    assert_string_equal(stk_build_source(node, 0, &dataset) == STK_OK ? "" : stk_error_text(), "");
    assert_int_equal(stk_dataset_count(dataset), n);
    assert_int_equal(stk_dataset_classes(dataset, NULL), n_classes);
    assert_int_equal(stk_dataset_field(dataset, "label", false, &dtype, &shape), has_label ? STK_OK : STK_NOT_FOUND);
    stk_dataset_free(dataset);
    stk_recipe_free(recipe);
}

static void sources_of_encoded_images(void **state)
{
    (void)state;
    expect_encoded("{tar: w*.tar}", 3, true, 0);
    expect_encoded("{tar: {files: [w.tar, w.tar], fields: {image: jpg}}}", 6, false, 0);
    expect_encoded("{files: p}", 2, false, 0);
    expect_encoded("{files: {paths: p, by: folder}}", 2, true, 2);
    expect_encoded("{files: {paths: ['p/*/*.jpg'], labels: labels.csv}}", 2, true, 0);
    expect_encoded("{images: p}", 2, true, 2);
}

static void refuse(const char *source, const char *text)
{
    stk_dataset *dataset = NULL;
    stk_recipe *recipe = read_recipe(source);
    if (recipe && stk_build_dataset(recipe, STK_PART_TRAIN, &dataset) == STK_OK) fail_msg("%s is accepted", source);
    if (!strstr(stk_error_text(), text)) fail_msg("%s: %s", source, stk_error_text());
    stk_recipe_free(recipe);
}

/* A pattern that names nothing but what lies next to data names no file, and no vocabulary. */
static void no_file_has_no_vocabulary(void **state)
{
    (void)state;
    int64_t n = 0;
    write_file("alone" STK_INDEX_SUFFIX, "", 0);
    stk_recipe *recipe = read_recipe("{tokens: {files: 'alone*', length: 2}}");
    if (!recipe) fail_msg("%s", stk_error_text());
    const stk_yaml_node *node = recipe->part[STK_PART_TRAIN].source;
    assert_int_equal(stk_source_kind_find("tokens")->vocabulary(node, &n), STK_OK);
    assert_int_equal(n, 0);
    stk_recipe_free(recipe);
}

static void several_data_sets(void **state)
{
    (void)state;
    expect("{concatenate: [{source: {npy: x.npy}}, {source: {npy: x.npy}, take: 2, shuffle: true}]}", 6, "f32[3,2]",
           "");
    expect("{zip: [{source: {npy: x.npy}, shuffle: true}, {source: {npy: y.npy}, rename: {image: label}, take: 3}]}", 3,
           "f32[3,2]", "i32[]");
    expect("{interleave: {of: [{source: {npy: x.npy}, repeat: 3}, {source: {npy: x.npy}}], block: 3}}", 16, "f32[3,2]",
           "");
    expect("{mix: {of: [{source: {npy: {image: x.npy, label: y.npy}}, weight: 0}, {source: {npy: {image: x.npy, label: "
           "y.npy}}, stages: [{scale: 0.5}]}], until: first}}",
           4, "f32[3,2]", "i32[]");
    expect("{concatenate: [{source: {mix: [{source: {npy: x.npy}}, {source: {npy: x.npy}}]}}]}", 8, "f32[3,2]", "");
    expect_encoded("{concatenate: [{source: {images: p}}, {source: {files: {paths: p, by: folder}}}]}", 4, true, 2);
    /* Filters come before take; classes go by name. */
    expect_encoded("{concatenate: [{source: {images: p}, filter: {keep: b}}, {source: {images: p}, filter: [{drop: 1}, "
                   "{field: image, min_bytes: 1}], take: 1}]}",
                   2, true, 2);
    refuse("{concatenate: [{source: {images: p}, filter: {keep: bb}}]}", "there is no class 'bb'; did you mean 'b'?");
    refuse("{concatenate: [{source: {images: p}, filter: {keep: [0], drop: [1]}}]}", "exclude each other");
    refuse("{concatenate: [{source: {images: p}, filter: {min: 2}}]}", "none of 2 records is kept");
    /* A shard by file comes before everything else. */
    expect_encoded("{concatenate: [{source: {images: p}, take: 1, shard: {count: 2, index: 1, policy: file}}]}", 1,
                   true, 2);
    refuse("{mix: [{source: {npy: x.npy}, weigth: 2}]}", "no key 'weigth' in 'data set' (did you mean 'weight'?)");
    refuse("{zip: []}", "'zip' needs at least one data set");
    refuse("{concatenate: [{source: {files: q}}]}", "no such data: 'q'");
    refuse("{concatenate: [{source: {npy: x.npy}, take: 9}]}", "recipe.yaml:1:39: cannot take 9 samples of 4");
    refuse("{zip: [{source: {npy: x.npy}}, {source: {npy: x.npy}}]}", "field 'image' is in data sets 1 and 2 of 'zip'");
    refuse("{concatenate: [{source: {npy: x.npy}, stages: [decode]}]}", "stage 'decode' does not fit");
    refuse("{concatenate: [{source: {npy: x.npy}, shard: {count: 2, index: 0, policy: file}}]}",
           "source 'npy' does not consist of files");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refuse("{files: {paths: []}}", "'paths' is an empty list");
    refuse("{files: {}}", "'files' needs the key 'paths'");
    refuse("{files: {paths: p, by: folder, labels: labels.csv}}", "'by' and 'labels' exclude each other");
    refuse("{files: q}", "no such data: 'q'");
    refuse("{tar: 'x*.tar'}", "no such data: 'x*.tar'");
    refuse("{npy: {}}", "'npy' must be a map of names");
    refuse("{npy: 'xy.npz:z'}", "has no array 'z'");
    refuse("{tfrecord: a.tfrecord}", "'tfrecord' must be a map of keys");
    refuse("{tfrecord: {files: a.tfrecord, parse_example: {label: u16}}}", "no dtype 'u16' (did you mean 'f16'?)");
    refuse("{tfrecord: {files: a.tfrecord, parse_example: {label: {dtype: u8, default: 256}}}}", "outside of u8");
    refuse("{tfrecord: {files: a.tfrecord, parse_example: {label: {dtype: i64, default: 0.5}}}}", "a whole number");
    refuse("{tfrecord: {files: a.tfrecord, parse_example: {image: {dtype: encoded, shape: [2]}}}}", "have no shape");
    refuse("{tfrecord: {files: y.npy, parse_example: {label: i64}}}", "y.npy': record 0 at byte 0");
    refuse("{tar: {files: w.tar, fields: {image: npy}}}", "recipe.yaml:1:");
}

static int set_up(void **state)
{
    static uint8_t tar[golden_web_bytes];
    uLongf n = sizeof(tar);
    if (make_test_folder(state) != 0 || uncompress(tar, &n, golden_web, sizeof(golden_web)) != Z_OK) return -1;
    write_file("x.npy", golden_x_v1, sizeof(golden_x_v1));
    write_file("y.npy", golden_y_v1, sizeof(golden_y_v1));
    write_file("xy.npz", golden_stored_npz, sizeof(golden_stored_npz));
    write_file("a.tfrecord", golden_plain, sizeof(golden_plain));
    write_file("b.tfrecord", golden_zlib, sizeof(golden_zlib));
    write_file("w.tar", tar, sizeof(tar));
    write_file("p/a/1.jpg", "x", 1);
    write_file("p/b/2.jpg", "x", 1);
    write_file("labels.csv", "1.jpg,5\n2.jpg,6\n", 16);
    return setenv("STOKER_CACHE", in_folder("cache"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_source),      cmocka_unit_test(sources_of_encoded_images),
        cmocka_unit_test(no_file_has_no_vocabulary), cmocka_unit_test(several_data_sets),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, remove_test_folder);
}
