/* Archives as data sets come in: tar, tar in GZIP, and ZIP, told apart by their first bytes. Regular files only: links,
 * devices and pipes of a tar are passed over, so that nothing unpacked points anywhere. Parsers: codec/tar.h,
 * codec/zip.h, codec/inflate.h; all fuzzed.
 *
 * Threads: any number may read from one archive.
 */
#ifndef STK_DATA_ARCHIVE_ARCHIVE_H
#define STK_DATA_ARCHIVE_ARCHIVE_H

#include "base/input.h"

enum { STK_ARCHIVE_NAME = 1024 };

typedef struct stk_archive stk_archive;

typedef struct stk_archive_member {
    const char *name; /* as the archive has it, not to be trusted: stk_archive_safe_name */
    uint64_t n_bytes;
} stk_archive_member;

/* What an archive may come to before it is taken for an attack. */
typedef struct stk_archive_limits {
    uint64_t most_bytes; /* of all files together, and of a tar once unpacked */
    size_t most_files;
    const char *const *keep; /* only files whose names begin so are unpacked, NULL at the end; NULL: all */
} stk_archive_limits;

/* input is borrowed until the archive is closed. scratch: a folder in which a GZIP is unpacked to a file without a
 * name, which goes away with the archive or the process. Texts do not name the archive. */
stk_status stk_archive_open(const stk_input *input, const char *scratch, stk_archive_limits limits, stk_archive **out);
void stk_archive_close(stk_archive *archive);

size_t stk_archive_count(const stk_archive *archive);
stk_archive_member stk_archive_at(const stk_archive *archive, size_t i);
/* All of member i; a ZIP's CRC is checked. *out: malloc'ed. */
stk_status stk_archive_read(const stk_archive *archive, size_t i, uint8_t **out);
/* Writes member i to fd; path is for messages. */
stk_status stk_archive_copy(const stk_archive *archive, size_t i, int fd, const char *path);

/* A member's name as a path below a folder, without its first n_strip folders; "" for one that is passed over: hidden
 * files, folders, and what lies not deep enough. STK_CORRUPT where it would lead out of the folder (a path from the
 * root, "..", a backslash), has control characters, or is too long. */
stk_status stk_archive_safe_name(const char *name, int n_strip, char out[STK_ARCHIVE_NAME]);

/* Members and bytes so far, of all. */
typedef bool (*stk_archive_progress_fn)(void *user, size_t n_done, size_t n_all);

typedef struct stk_archive_written {
    int64_t n_files, n_bytes, n_passed_over;
} stk_archive_written;

/* Writes all members below folder, which must be ours alone: no file in it is ever opened twice, so that a name that
 * comes again is an error. progress may be NULL. */
stk_status stk_archive_unpack(const stk_archive *archive, const char *folder, int n_strip, stk_archive_limits limits,
                              stk_archive_progress_fn progress, void *user, stk_archive_written *out);

#endif
