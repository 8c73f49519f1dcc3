#include "data/codec/jpeg_crop.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "data/codec/jpeg.h"
#include "data/codec/jpeg_crop/decoder.h"

struct stk_jpeg_reader {
    stk_jpeg_decoder own;
    stk_span encoded;
    stk_rect rect;
    int channels;
    int64_t n_done; /* rows */
    bool fell_back;
    stk_block library; /* memory of pixels */
    uint8_t *pixels;   /* of the rectangle, from the library; NULL: the own decoder reads */
};

stk_status stk_jpeg_reader_open(stk_jpeg_reader **out)
{
    *out = NULL;
    stk_jpeg_reader *r = aligned_alloc(64, sizeof(*r)); /* a multiple, as its tables are aligned so */
    if (!r) return stk_fail_memory(sizeof(*r));
    memset(r, 0, sizeof(*r));
    r->own.kernels = stk_jpeg_kernels_choose();
    *out = r;
    return STK_OK;
}

void stk_jpeg_reader_close(stk_jpeg_reader *reader)
{
    if (!reader) return;
    stk_jpeg_reader_trim(reader);
    free(reader);
}

void stk_jpeg_reader_trim(stk_jpeg_reader *reader)
{
    stk_block_free(&reader->own.memory);
    stk_block_free(&reader->library);
    reader->pixels = NULL;
}

bool stk_jpeg_reader_fell_back(const stk_jpeg_reader *reader)
{
    return reader->fell_back;
}

bool stk_jpeg_reader_is_fast(const stk_jpeg_reader *reader)
{
    return reader->own.kernels != &stk_jpeg_kernels_plain;
}

/* --- one for each thread --- */

static stk_once key_once = STK_ONCE_INIT;
static pthread_key_t reader_key;
static bool has_key;

static void close_of_thread(void *reader)
{
    stk_jpeg_reader_close(reader);
}

static void make_key(void)
{
    has_key = pthread_key_create(&reader_key, close_of_thread) == 0;
}

stk_jpeg_reader *stk_jpeg_reader_of_thread(void)
{
    stk_once_run(&key_once, make_key);
    if (!has_key) return NULL;
    stk_jpeg_reader *reader = pthread_getspecific(reader_key);
    if (reader || stk_jpeg_reader_open(&reader) != STK_OK) return reader;
    if (pthread_setspecific(reader_key, reader) == 0) return reader;
    stk_jpeg_reader_close(reader);
    return NULL;
}

/* --- the library behind it --- */

static size_t row_bytes(const stk_jpeg_reader *r)
{
    return (size_t)r->rect.width * (size_t)r->channels;
}

/* The rectangle into dst, by the library, which judges files that are not for us. */
static stk_status decode_by_library(stk_jpeg_reader *r, uint8_t *dst)
{
    int64_t height, width;
    r->fell_back = true;
    STK_RETURN_IF_ERROR(stk_image_size(r->encoded, &height, &width));
    const stk_rect *rect = &r->rect;
    if (rect->top < 0 || rect->left < 0 || rect->height < 1 || rect->width < 1 || rect->height > height - rect->top ||
        rect->width > width - rect->left)
        return stk_fail(STK_INVALID, "a crop of %lld x %lld at (%lld, %lld) is not inside an image of %lld x %lld",
                        (long long)rect->height, (long long)rect->width, (long long)rect->top, (long long)rect->left,
                        (long long)height, (long long)width);
    return stk_jpeg_decode_by_library(r->encoded, height, width, rect, r->channels, dst);
}

/* What remains after the own decoder stopped. */
static stk_status fall_back(stk_jpeg_reader *r)
{
    int64_t height, width;
    /* Sizes first: they bound what is allocated. */
    STK_RETURN_IF_ERROR(stk_image_size(r->encoded, &height, &width));
    if (r->rect.height > height || r->rect.width > width) return decode_by_library(r, NULL);
    size_t bytes = r->rect.height > 0 && r->rect.width > 0 ? (size_t)r->rect.height * row_bytes(r) : 1;
    r->pixels = stk_block_get(&r->library, bytes);
    return r->pixels ? decode_by_library(r, r->pixels) : STK_NO_MEMORY;
}

/* --- reading --- */

static stk_status begin(stk_jpeg_reader *r, stk_span encoded, stk_rect rect, int channels, stk_jpeg_index *index)
{
    r->pixels = NULL;
    r->encoded = encoded;
    r->rect = rect;
    r->channels = channels;
    r->n_done = 0;
    r->fell_back = false;
    return stk_jpeg_decoder_begin(&r->own, encoded, rect, channels, index);
}

stk_status stk_jpeg_reader_begin(stk_jpeg_reader *r, stk_span encoded, stk_rect rect, int channels,
                                 stk_jpeg_index *index)
{
    stk_status status = begin(r, encoded, rect, channels, index);
    return status == STK_UNSUPPORTED ? fall_back(r) : status;
}

static stk_status check_left(const stk_jpeg_reader *r, int64_t n)
{
    if (n >= 0 && n <= r->rect.height - r->n_done) return STK_OK;
    return stk_fail(STK_INVALID, "%lld rows are wanted where %lld are left", (long long)n,
                    (long long)(r->rect.height - r->n_done));
}

stk_status stk_jpeg_reader_rows(stk_jpeg_reader *r, int64_t n, uint8_t *dst, size_t stride_bytes)
{
    STK_RETURN_IF_ERROR(check_left(r, n));
    if (!r->pixels) {
        stk_status status = stk_jpeg_decoder_rows(&r->own, n, dst, stride_bytes);
        if (status != STK_UNSUPPORTED) {
            r->n_done += n;
            return status;
        }
        STK_RETURN_IF_ERROR(fall_back(r));
    }
    for (; n > 0; n--, r->n_done++, dst += stride_bytes)
        memcpy(dst, r->pixels + (size_t)r->n_done * row_bytes(r), row_bytes(r));
    return STK_OK;
}

stk_status stk_jpeg_reader_skip(stk_jpeg_reader *r, int64_t n)
{
    STK_RETURN_IF_ERROR(check_left(r, n));
    r->n_done += n;
    r->own.y += n;
    return STK_OK;
}

stk_status stk_jpeg_decode_crop(stk_jpeg_reader *r, stk_span encoded, stk_rect rect, int channels, uint8_t *dst)
{
    stk_status status = begin(r, encoded, rect, channels, NULL);
    if (status == STK_OK) status = stk_jpeg_decoder_rows(&r->own, rect.height, dst, row_bytes(r));
    r->n_done = rect.height;
    return status == STK_UNSUPPORTED ? decode_by_library(r, dst) : status;
}

int stk_jpeg_reader_index_size(stk_jpeg_reader *r, stk_span encoded, int every)
{
    stk_status status = begin(r, encoded, (stk_rect){0, 0, 1, 1}, 1, NULL);
    if (status != STK_OK) return status == STK_NO_MEMORY ? -1 : 0;
    int per_row = every > 0 ? (r->own.mcus_across + every - 1) / every : 1;
    return r->own.mcus_down * per_row;
}

stk_status stk_jpeg_reader_index(stk_jpeg_reader *r, stk_span encoded, stk_jpeg_index *index)
{
    stk_status status = begin(r, encoded, (stk_rect){0, 0, 1, 1}, 1, index);
    if (status == STK_OK) status = stk_jpeg_decoder_skip_to_end(&r->own);
    if (status == STK_UNSUPPORTED) return stk_fail(STK_CORRUPT, "no entry points in a damaged or unusual JPEG");
    return status;
}
