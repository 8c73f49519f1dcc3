/* Control groups, version 1 and 2: the folders whose limits hold for this process. */
#ifndef STK_BASE_CGROUP_H
#define STK_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* The text of /proc/self/cgroup, as far as it fits; "" where there is none. */
void stk_cgroup_read_groups(char *out, size_t out_bytes);

/* Calls visit for the folder of the process's group, and of all groups around it up to the root, which a container sees
 * as its own. groups: text as of /proc/self/cgroup; root: where groups are mounted; controller: of version 1 ("cpu").
 * A folder need not exist. */
void stk_cgroup_visit(const char *groups, const char *root, const char *controller,
                      void (*visit)(void *user, const char *folder, bool is_v1), void *user);

/* Cores that the least of all quotas grants; a huge number: there is none. groups and root: as above. */
double stk_cgroup_cores(const char *groups, const char *root);

#endif
