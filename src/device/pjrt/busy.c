/* Who has the TPU. libtpu gives it to one process at a time, which has the chips' files open, and a file as a lock. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "device/pjrt/pjrt.h"

typedef struct holder {
    int pid;
    char name[32], file[256];
} holder;

static bool is_of_tpu(const char *path)
{
    static const char chip[] = "/dev/accel", group[] = "/dev/vfio/";
    const char *name = strrchr(path, '/');
    return !strncmp(path, chip, strlen(chip)) ||
           (!strncmp(path, group, strlen(group)) && isdigit((unsigned char)path[strlen(group)])) ||
           (name && !strcmp(name, "/libtpu_lockfile"));
}

/* Whether that process has such a file open. Others' files are seen by root alone. */
static bool holds(int pid, holder *out)
{
    char path[320];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    for (const struct dirent *item; folder && !found && (item = readdir(folder));) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, item->d_name);
        ssize_t n = readlink(path, out->file, sizeof(out->file) - 1);
        out->file[n > 0 ? n : 0] = '\0';
        found = is_of_tpu(out->file);
    }
    if (folder) closedir(folder);
    return found;
}

static bool find_holder(holder *out)
{
    char path[64];
    bool found = false;
    DIR *folder = opendir("/proc");
    for (const struct dirent *item; folder && !found && (item = readdir(folder));) {
        out->pid = atoi(item->d_name);
        found = out->pid > 0 && out->pid != getpid() && holds(out->pid, out);
    }
    if (folder) closedir(folder);
    if (!found) return false;
    snprintf(path, sizeof(path), "/proc/%d/comm", out->pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(out->name, sizeof(out->name), file)) out->name[0] = '\0';
    out->name[strcspn(out->name, "\n")] = '\0';
    if (file) fclose(file);
    return true;
}

stk_status pjrt_explain_busy(stk_status status)
{
    static const char *const signs[] = {"already in use", "libtpu_lockfile", "resource busy"};
    holder who;
    bool is_busy = false;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && status != STK_OK; i++)
        is_busy |= strstr(stk_error_text(), signs[i]) != NULL;
    if (!is_busy) return status;
    if (find_holder(&who))
        return stk_fail(status, "%s; process %d (%s) has '%s' open: wait for its end, end it, or choose another device",
                        stk_error_text(), who.pid, who.name, who.file);
    return stk_fail(status,
                    "%s; no process that can be seen from here has a TPU open: 'sudo lsof -w /dev/accel* /dev/vfio/* "
                    "/tmp/libtpu_lockfile' lists those of all users, and if there is none, a killed one has left its "
                    "lock: 'sudo rm /tmp/libtpu_lockfile'",
                    stk_error_text());
}
