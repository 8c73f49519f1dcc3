/* Public data sets: where they are, what their bytes must be, and under which licence. What `stoker get` does, as
 * calls.
 *
 * Files are read by range requests (libcurl), tried again where that may help, and go on where an earlier attempt was
 * cut off: what has come so far is NAME.part, and next to it NAME.part.state tells of which state of the file. Only a
 * whole file with the right checksum gets its name. Threads: any; one process at a time for each folder.
 *
 * Archives (tar, also in GZIP, and ZIP) are fetched to FOLDER.download, which a file in it marks as ours, and unpacked
 * under a temporary name, which becomes FOLDER when it is whole; a process that was killed while it unpacked leaves
 * nothing that looks done, and the next one begins the unpacking again. FOLDER/stoker-source.txt says where it came
 * from. Only regular files are written: no links, devices or hidden files, nothing outside of the folder, no name
 * twice, and no more than 16 times the archive's bytes and 64 MiB.
 */
#ifndef STOKER_DATA_DOWNLOAD_H
#define STOKER_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_download_file {
    const char *name; /* in the folder of the data set */
    const char *url;
    int64_t n_bytes;      /* 0: not known, and what comes counts */
    const char *checksum; /* "sha256:..." or, where only that is published, "md5:..."; NULL: not checked */
} stk_download_file;

/* What becomes of the files. */
typedef enum stk_download_form {
    STK_DOWNLOAD_FILES,   /* they are what recipes read */
    STK_DOWNLOAD_ARCHIVE, /* each is an archive; its files are */
    STK_DOWNLOAD_CIFAR10, /* Toronto's binary archives become train/CLASS/00000.png and test/CLASS/00000.png */
    STK_DOWNLOAD_CIFAR100,
    STK_DOWNLOAD_TEXT /* it is one text: its first nine tenths become train.txt, the rest valid.txt, and both the
                       * numbers of their bytes, train.bin and valid.bin (stoker/data/tokenize.h) */
} stk_download_form;

typedef struct stk_download_set {
    const char *name, *about, *licence;
    const stk_download_file *file; /* [n_files] */
    int n_files;
    stk_download_form form;
    int n_strip;             /* folders at the begin of an archive's paths that are left out */
    const char *recipe;      /* the recipe's source that reads it, in flow style; NULL: none is named */
    const char *const *keep; /* of an archive: only files whose names begin so, NULL at the end; NULL: all */
} stk_download_set;

/* Data set number i; NULL past the end. Constants. */
STK_API const stk_download_set *stk_download_at(int i);

/* n_done of n_all bytes of a file are there; or, name "unpacking", that many of an archive's files. False stops:
 * STK_INTERRUPTED. What was fetched is kept, and the next call goes on from there; unpacking begins again. */
typedef bool (*stk_download_fn)(void *user, const char *name, int64_t n_done, int64_t n_all);

/* Fetches what is not there yet into folder, which is made. mirror: NULL, or an address or folder that has the files by
 * their names. progress may be NULL. STK_CORRUPT: another length or checksum than that of the table, both of which the
 * text names, what came is kept as NAME.wrong or NAME.wrong-2 and so on; or a damaged archive. STK_BUSY: folder,
 * FOLDER.download or NAME.part is there and something else, or another process fetches the same. STK_UNSUPPORTED: a
 * build without libcurl or libcrypto. */
STK_API stk_status stk_download(const stk_download_set *set, const char *folder, const char *mirror,
                                stk_download_fn progress, void *user);

#ifdef __cplusplus
}
#endif
#endif
