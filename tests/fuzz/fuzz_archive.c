/* An archive from memory, as it is, packed as GZIP and in a tar's frame: opened, its names made safe, its members read.
 *
 * covers: data/archive/archive.c data/archive/safe_name.c data/codec/inflate.c
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data/archive/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20, FRAME = 512 };

/* What is asked of a name: it stays below its folder. */
static void check_name(const char *name)
{
    if (strlen(name) >= STK_ARCHIVE_NAME || name[0] == '/') abort();
    for (const char *p = name; *p; p += strcspn(p, "/"), p += *p == '/') {
        size_t n = strcspn(p, "/");
        if (n == 0 || n > 255 || p[0] == '.' || memchr(p, '\\', n) || (p[n] == '/' && p[n + 1] == 0)) abort();
    }
}

static void read_archive(stk_span bytes)
{
    stk_input input = stk_input_of_memory(bytes);
    stk_archive_limits limits = {.most_bytes = MOST_BYTES, .most_files = 1000};
    stk_archive *archive;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0 && stk_archive_open(&input, "/tmp", limits, &archive) == STK_OK) {
        for (size_t i = 0; i < stk_archive_count(archive); i++) {
            stk_archive_member member = stk_archive_at(archive, i);
            char name[STK_ARCHIVE_NAME];
            for (int n_strip = 0; n_strip < 3; n_strip++)
                if (stk_archive_safe_name(member.name, n_strip, name) == STK_OK) check_name(name);
            if (member.n_bytes <= MOST_BYTES) (void)stk_archive_copy(archive, i, nowhere, "/dev/null");
        }
        stk_archive_close(archive);
    }
    if (nowhere >= 0) close(nowhere);
}

static void read_packed(stk_span bytes)
{
    uLongf n = compressBound((uLong)bytes.n) + 32;
    uint8_t *packed = malloc(n);
    z_stream z = {.next_in = (Bytef *)bytes.data, .avail_in = (uInt)bytes.n, .next_out = packed, .avail_out = (uInt)n};
    if (packed && deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
        if (deflate(&z, Z_FINISH) == Z_STREAM_END) read_archive((stk_span){packed, z.total_out});
        deflateEnd(&z);
    }
    free(packed);
}

/* The bytes as the header of a tar, its checksum right, and as a name. */
static void read_framed(stk_span bytes)
{
    uint8_t frame[2 * FRAME] = {0};
    unsigned sum = 0;
    memcpy(frame, bytes.data, bytes.n < sizeof(frame) ? bytes.n : sizeof(frame));
    memset(frame + 148, ' ', 8);
    for (int i = 0; i < FRAME; i++)
        sum += frame[i];
    snprintf((char *)frame + 148, 8, "%06o", sum);
    read_archive((stk_span){frame, sizeof(frame)});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), name[STK_ARCHIVE_NAME];
    read_archive((stk_span){data, size});
    if (size > 0) read_packed((stk_span){data, size});
    if (size > 0) read_framed((stk_span){data, size});
    if (text) {
        if (size) memcpy(text, data, size);
        text[size] = 0;
        if (stk_archive_safe_name(text, size ? data[0] % 3 : 0, name) == STK_OK) check_name(name);
    }
    free(text);
    return 0;
}
