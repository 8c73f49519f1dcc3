/* Tar archives: ustar, GNU long names, pax paths and sizes (POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar's
 * manual, "Basic Tar Format"). Only where the regular files lie; folders, links and devices are passed over. Every
 * header's checksum is checked and every size held against the file; fuzzed. Threads: any.
 */
#ifndef STK_DATA_CODEC_TAR_H
#define STK_DATA_CODEC_TAR_H

#include "base/input.h"

/* One regular file: n bytes from byte `at` of the archive on. name is borrowed until the call returns. */
typedef stk_status (*stk_tar_member_fn)(void *user, const char *name, uint64_t at, uint64_t n);

/* Calls fn for each member in order, and ends at the first error. An archive without the two blocks of zeros at its end
 * is whole where it ends after a member. Texts name the byte, not the file. */
stk_status stk_tar_scan(const stk_input *input, stk_tar_member_fn fn, void *user);

#endif
