/* Videos: clips equal what ffmpeg decodes of the whole file, for containers and codecs with B frames, open groups of
 * pictures and none of the times; any number of threads; files that are damaged or cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/dataset/dataset.h"
#include "data/source/files.h"
#include "data/source/reader.h"
#include "stoker/data/fields.h"
#include "stoker/data/loader.h"
#include "stoker/data/verify.h"
#include "stoker/data/video.h"

enum { H = 48, W = 82, FRAME = H * W * 3, N = 50 };
#define SCALER "flags=bilinear+full_chroma_int+accurate_rnd+bitexact"

static const struct example {
    const char *name, *options;
    bool has_times;
} examples[] = {
    {"h264.mp4", "-c:v libx264 -bf 3 -g 17 -pix_fmt yuv420p", true},
    {"h264-open.mp4", "-c:v libx264 -bf 3 -x264-params open-gop=1:keyint=12:min-keyint=12 -pix_fmt yuv420p", true},
    {"h264.mkv", "-c:v libx264 -bf 2 -g 15 -pix_fmt yuv420p", true},
    {"h264.ts", "-c:v libx264 -bf 2 -g 15 -pix_fmt yuv420p", true},
    {"h264-refresh.ts", "-c:v libx264 -bf 0 -x264-params intra-refresh=1:keyint=20 -pix_fmt yuv420p", true},
    {"mpeg4.mp4", "-c:v mpeg4 -q:v 3 -bf 2 -g 12", true},
    {"mpeg4.avi", "-c:v mpeg4 -q:v 3 -g 12", true},
    {"mpeg4-b.avi", "-c:v mpeg4 -q:v 3 -bf 2 -g 12", false},
    {"mpeg2.mpg", "-c:v mpeg2video -q:v 3 -bf 2 -g 12", false},
    {"mjpeg.avi", "-c:v mjpeg -q:v 3 -pix_fmt yuvj420p", true},
    {"edit.mp4", "-ss 0.5 -i %s/h264.mp4 -c copy", true},
};
enum { N_EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

static bool has_ffmpeg;

static void run_ffmpeg(const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof(command), "ffmpeg -nostdin -v error -y %s >>%s/ffmpeg.log 2>&1", arguments, test_folder);
    if (system(command) != 0) fail_msg("%s", command);
}

/* A video of N frames that differ everywhere, or what the example makes of another. */
static const char *make_video(const struct example *e)
{
    char arguments[1024], options[512];
    const char *path = in_folder(e->name);
    snprintf(options, sizeof(options), e->options, test_folder);
    if (strstr(options, "-i "))
        snprintf(arguments, sizeof(arguments), "%s %s", options, path);
    else
        snprintf(
            arguments, sizeof(arguments),
            "-f lavfi -i \"nullsrc=size=%dx%d:rate=25,geq=lum='128+90*sin(X/9+N*1.7)*cos(Y/7-N)':cb='128+60*sin(N*2)'"
            ":cr='128+60*cos(N+X/30)'\" -frames:v %d -threads 1 %s %s",
            W, H, N, options, path);
    run_ffmpeg(arguments);
    return path;
}

/* All frames as ffmpeg gives them, [*n,height,width,3]. */
static uint8_t *decode_all(const char *path, const char *filter, size_t frame_bytes, int64_t *n)
{
    char arguments[1024];
    const char *raw = in_folder("all.raw");
    uint8_t *bytes = NULL;
    size_t capacity = 0, n_bytes;
    snprintf(arguments, sizeof(arguments), "-i %s -vsync passthrough -vf scale=%s -pix_fmt rgb24 -f rawvideo %s", path,
             filter, raw);
    run_ffmpeg(arguments);
    assert_int_equal(stk_file_read(raw, &bytes, &capacity, &n_bytes), STK_OK);
    assert_true(n_bytes > 0 && n_bytes % frame_bytes == 0);
    *n = (int64_t)(n_bytes / frame_bytes);
    for (int64_t i = 1; i < *n; i++) /* else a frame too far would be no difference */
        assert_memory_not_equal(bytes + (size_t)i * frame_bytes, bytes + (size_t)(i - 1) * frame_bytes, frame_bytes);
    return bytes;
}

static stk_dataset *open_one(const char *path, stk_video_config config)
{
    const char *paths[] = {path};
    config.paths = paths;
    config.n_paths = 1;
    return stk_dataset_video(&config);
}

/* The clip at every start, first ascending, then in an order that jumps, against the whole. */
static void check_all_clips(const char *path, int64_t n_frames, int64_t stride, const uint8_t *all, int64_t n)
{
    int64_t span = (n_frames - 1) * stride + 1, n_clips = n - span + 1;
    stk_dataset *dataset = open_one(
        path, (stk_video_config){.n_frames = n_frames, .stride = stride, .clips = STK_CLIPS_GRID, .n_clips = n_clips});
    stk_reader reader = {0};
    stk_item item[STK_MAX_FIELDS];
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_dataset_count(dataset), n_clips);
    for (int64_t i = 0; i < 2 * n_clips; i++) {
        int64_t start = i < n_clips ? i : (i * 29 + 7) % n_clips;
        stk_status status = stk_reader_read(&reader, dataset->source, start, &(stk_stage_key){0}, item);
        if (status != STK_OK) fail_msg("'%s', clip %d: %s", path, (int)start, stk_error_text());
        for (int64_t t = 0; t < n_frames; t++)
            if (memcmp((uint8_t *)item[0].data + t * FRAME, all + (start + t * stride) * FRAME, FRAME))
                fail_msg("'%s': frame %d of the clip at %d differs", path, (int)t, (int)start);
    }
    stk_reader_free(&reader, dataset->source);
    stk_dataset_free(dataset);
}

static void clips_are_ffmpegs(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    for (int k = 0; k < N_EXAMPLES; k++) {
        const char *path = make_video(&examples[k]);
        stk_video_info info;
        int64_t n;
        uint8_t *all = decode_all(path, SCALER, FRAME, &n);
        if (stk_video_get_info(path, &info) != STK_OK) fail_msg("%s", stk_error_text());
        if (info.n_frames != n || info.n_whole != n || info.has_times != examples[k].has_times)
            fail_msg("'%s' has %d frames, the index says %d, times %d", path, (int)n, (int)info.n_frames,
                     info.has_times);
        assert_true(info.height == H && info.width == W);
        check_all_clips(path, 5, 1, all, n);
        check_all_clips(path, 4, 7, all, n);
        check_all_clips(path, 1, 1, all, n);
        free(all);
    }
}

/* --- sizes, labels, short videos --- */

static stk_status read_one(const stk_dataset *dataset, int64_t i_record, uint8_t *dst, size_t n_bytes)
{
    stk_reader reader = {0};
    stk_item item[STK_MAX_FIELDS];
    stk_status status = stk_reader_read(&reader, dataset->source, i_record, &(stk_stage_key){.seed = 3}, item);
    if (status == STK_OK) {
        assert_int_equal(item[0].n_bytes, n_bytes);
        memcpy(dst, item[0].data, n_bytes);
    }
    stk_reader_free(&reader, dataset->source);
    return status;
}

static void frames_are_scaled(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    enum { TO_H = 30, TO_W = 50, TO_FRAME = TO_H * TO_W * 3 };
    const char *path = make_video(&examples[0]);
    static uint8_t got[N * TO_FRAME];
    int64_t n;
    uint8_t *all = decode_all(path, "50:30:" SCALER, TO_FRAME, &n);
    stk_dataset *dataset =
        open_one(path, (stk_video_config){.n_frames = N, .clips = STK_CLIPS_MIDDLE, .height = TO_H, .width = TO_W});
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(read_one(dataset, 0, got, sizeof(got)), STK_OK);
    assert_memory_equal(got, all, sizeof(got));
    stk_dataset_free(dataset);
    free(all);
}

static void short_videos_and_labels(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    static uint8_t got[3 * FRAME];
    char pattern[512];
    assert_int_equal(stk_dir_make(in_folder("cat")), STK_OK);
    assert_int_equal(stk_dir_make(in_folder("dog")), STK_OK);
    make_video(&(struct example){"cat/short.mp4", "-frames:v 2 -c:v mpeg4 -q:v 3", true});
    make_video(&(struct example){"dog/long.mp4", "-c:v mpeg4 -q:v 3", true});
    snprintf(pattern, sizeof(pattern), "%s/*/*.mp4", test_folder);
    stk_video_config config = {.n_frames = 3, .clips = STK_CLIPS_GRID, .labels = STK_LABELS_BY_FOLDER};
    stk_dataset *dataset = open_one(pattern, config);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "cat/short.mp4' has 2 frames and a clip spans 3"));
    stk_dataset_free(dataset);

    config.short_videos = STK_SHORT_LEAVE_OUT;
    dataset = open_one(pattern, config);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), (N + 2) / 3);
    assert_non_null(strstr(stk_dataset_note(dataset), "1 videos are shorter"));
    stk_dataset_free(dataset);

    config.short_videos = STK_SHORT_REPEAT;
    dataset = open_one(pattern, config);
    assert_int_equal(stk_dataset_count(dataset), 1 + (N + 2) / 3);
    assert_int_equal(read_one(dataset, 0, got, sizeof(got)), STK_OK);
    assert_memory_equal(got + FRAME, got + 2 * FRAME, FRAME);
    assert_memory_not_equal(got, got + FRAME, FRAME);
    stk_reader reader = {0};
    stk_item item[STK_MAX_FIELDS];
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(stk_reader_read(&reader, dataset->source, i, &(stk_stage_key){0}, item), STK_OK);
        assert_int_equal(*(const int32_t *)item[1].data, i);
    }
    stk_reader_free(&reader, dataset->source);
    stk_dataset_free(dataset);
}

/* --- threads --- */

static uint64_t hash_of(const char *pattern, int n_threads)
{
    stk_dataset *dataset = open_one(pattern, (stk_video_config){.n_frames = 4, .stride = 2, .n_clips = 6});
    stk_loader *loader;
    stk_loader_config config = {.n_epochs = 2, .n_threads = n_threads};
    uint64_t hash = 0;
    stk_dataset_shuffle(dataset, 5);
    stk_dataset_apply_to(dataset, "clip", stk_random_flip());
    stk_dataset_batch(dataset, 3, true);
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hash = hash * 31 + stk_batch_hash(batch);
    if (stk_loader_status(loader) != STK_OK) fail_msg("%s", stk_error_text());
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    return hash;
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    char pattern[512];
    assert_int_equal(stk_dir_make(in_folder("some")), STK_OK);
    make_video(&(struct example){"some/a.mp4", examples[0].options, true});
    make_video(&(struct example){"some/b.mkv", examples[1].options, true});
    make_video(&(struct example){"some/c.avi", "-c:v mpeg4 -bf 2", false});
    snprintf(pattern, sizeof(pattern), "%s/some/*", test_folder);
    uint64_t one = hash_of(pattern, 1);
    assert_true(hash_of(pattern, 2) == one);
    assert_true(hash_of(pattern, 8) == one);
}

/* --- damage --- */

/* The first n_bytes of a file under another name. */
static const char *cut_file(const char *path, const char *name, double part)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    const char *cut = write_file(name, bytes, (size_t)((double)n * part));
    free(bytes);
    return cut;
}

/* One clip at the start does not hide what is wrong behind it. */
static void check_verify(const char *path, stk_status want)
{
    stk_verify_progress p;
    stk_dataset *dataset = open_one(path, (stk_video_config){.n_frames = 1, .n_clips = 1, .clips = STK_CLIPS_GRID});
    assert_int_equal(stk_dataset_verify(dataset, NULL, &p), want);
    assert_int_equal(p.n_done, 1);
    assert_int_equal(p.n_corrupt, want != STK_OK);
    stk_dataset_free(dataset);
}

static void cut_files_are_told(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    static const char *const names[] = {"cut.mp4", "cut.mkv"};
    for (int k = 0; k < 2; k++) {
        char whole_name[32], want[64];
        snprintf(whole_name, sizeof(whole_name), "whole-%s", names[k]);
        const char *whole = make_video(
            &(struct example){whole_name, "-c:v libx264 -bf 2 -g 10 -pix_fmt yuv420p -movflags +faststart", true});
        static uint8_t got[FRAME];
        int64_t n, n_good = 0;
        uint8_t *all = decode_all(whole, SCALER, FRAME, &n);
        const char *path = cut_file(whole, names[k], 0.7);
        stk_dataset *dataset = open_one(path, (stk_video_config){.n_frames = 1, .clips = STK_CLIPS_GRID});
        if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
        int64_t n_clips = stk_dataset_count(dataset);
        for (int64_t i = 0; i < n_clips; i++) {
            stk_status status = read_one(dataset, i, got, FRAME);
            if (status == STK_OK) {
                assert_int_equal(n_good, i); /* none behind the first that is missing */
                assert_memory_equal(got, all + i * FRAME, FRAME);
                n_good++;
                continue;
            }
            assert_int_equal(status, STK_CORRUPT);
            snprintf(want, sizeof(want), "frame %d of %d: the file is cut short", (int)i, (int)n_clips);
            if (!strstr(stk_error_text(), want)) fail_msg("'%s' lacks '%s'", stk_error_text(), want);
        }
        if (n_good <= N / 3 || n_good >= n_clips)
            fail_msg("'%s': %d of %d frames are whole", path, (int)n_good, (int)n_clips);
        if (k == 0) assert_int_equal(n_clips, n);
        stk_dataset_free(dataset);
        check_verify(whole, STK_OK);
        check_verify(path, STK_CORRUPT);
        free(all);
    }
}

/* A file that cannot be opened is an error of its records, which can be left out; all files, an error of opening. */
static void files_that_are_no_videos(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    char pattern[512];
    assert_int_equal(stk_dir_make(in_folder("mixed")), STK_OK);
    write_file("mixed/b.mp4", "this is no video", 16);
    snprintf(pattern, sizeof(pattern), "%s/mixed/*", test_folder);
    stk_dataset *dataset = open_one(pattern, (stk_video_config){.n_frames = 4});
    assert_int_equal(stk_dataset_status(dataset), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "mixed/b.mp4': it is no video that can be read"));
    stk_dataset_free(dataset);

    make_video(&(struct example){"mixed/a.mp4", "-c:v mpeg4", true});
    dataset = open_one(pattern, (stk_video_config){.n_frames = 4});
    stk_dataset_batch(dataset, 1, true);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .n_threads = 2}, &loader), STK_OK);
    while (stk_loader_next(loader)) {
    }
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "mixed/b.mp4', clip 0: frame 0: it is no video"));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Bytes that are not those of the file: an error or frames, and nothing worse. */
static void damaged_bytes(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    const char *whole = make_video(&examples[0]);
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    static uint8_t got[8 * FRAME];
    uint64_t random = 1;
    assert_int_equal(stk_file_read(whole, &bytes, &capacity, &n), STK_OK);
    for (int k = 0; k < 40; k++) {
        char name[32];
        uint8_t *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, bytes, n);
        for (int i = 0; i < 10; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 33) % n] = (uint8_t)(random >> 20);
        }
        snprintf(name, sizeof(name), "damaged-%d.mp4", k);
        stk_dataset *dataset = open_one(
            write_file(name, copy, n),
            (stk_video_config){
                .n_frames = 8, .clips = STK_CLIPS_GRID, .height = H, .width = W, .short_videos = STK_SHORT_REPEAT});
        for (int64_t i = 0; i < stk_dataset_count(dataset) && i < 8; i++)
            (void)read_one(dataset, i, got, sizeof(got));
        stk_dataset_free(dataset);
        free(copy);
    }
    free(bytes);
}

/* --- the side file --- */

static void index_is_kept_and_renewed(void **state)
{
    (void)state;
    if (!has_ffmpeg) skip();
    stk_video_info a, b;
    const char *path = make_video(&(struct example){"kept.mp4", "-c:v mpeg4 -g 5", true});
    char side[512];
    snprintf(side, sizeof(side), "%s.stkidx", path);
    assert_int_equal(stk_video_get_info(path, &a), STK_OK);
    assert_true(stk_path_exists(side));
    assert_int_equal(stk_video_get_info(path, &b), STK_OK);
    assert_true(a.n_frames == N && a.n_keys == N / 5 && b.n_frames == N && b.n_keys == a.n_keys);
    make_video(&(struct example){"kept.mp4", "-frames:v 20 -c:v mpeg4 -g 4", true});
    stk_dataset *dataset = open_one(path, (stk_video_config){.n_frames = 20});
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_non_null(strstr(stk_dataset_note(dataset), "out of date"));
    stk_dataset_free(dataset);
    assert_int_equal(stk_video_get_info(path, &b), STK_OK);
    assert_true(b.n_frames == 20 && b.n_keys == 5);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    stk_dataset *dataset = open_one("none.mp4", (stk_video_config){.n_frames = 0});
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    stk_dataset_free(dataset);
    dataset = open_one("/nowhere/none.mp4", (stk_video_config){.n_frames = 1});
    assert_true(stk_dataset_status(dataset) == STK_NOT_FOUND || stk_dataset_status(dataset) == STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "/nowhere/none.mp4"));
    stk_dataset_free(dataset);
}

/* Without FFmpeg's libraries opening says so; without the program there is nothing to compare with. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),        cmocka_unit_test(clips_are_ffmpegs),
        cmocka_unit_test(frames_are_scaled),        cmocka_unit_test(short_videos_and_labels),
        cmocka_unit_test(threads_do_not_matter),    cmocka_unit_test(cut_files_are_told),
        cmocka_unit_test(files_that_are_no_videos), cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(index_is_kept_and_renewed)};
    stk_video_info info;
    bool has_program =
        system("ffmpeg -v error -f lavfi -i testsrc2 -frames:v 1 -c:v libx264 -f null - 2>/dev/null") == 0;
    has_ffmpeg = has_program && stk_video_get_info("/nowhere/none.mp4", &info) != STK_UNSUPPORTED;
    int n_failed = cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
    if (n_failed || has_ffmpeg) return n_failed;
    printf("SKIP: videos need %s\n",
           has_program ? "a build with FFmpeg's libraries" : "the program ffmpeg with libx264");
    return 77;
}
