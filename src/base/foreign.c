/* See foreign.h. */
#include "base/foreign.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

enum { MOST = 32, NAME_BYTES = 601 };

typedef struct foreign {
    char what[NAME_BYTES];
    uintptr_t begin, end; /* of its code; both 0: not known yet */
} foreign;

static foreign all[MOST]; /* the first n stay, but for their names and addresses, which come once more */
static atomic_int n_all;
static stk_mutex lock; /* of those who write */
static stk_once once = STK_ONCE_INIT;

typedef struct call {
    int number;
    const char *doing;
} call;
static _Thread_local call current = {-1, NULL};

static void make_lock(void)
{
    stk_mutex_init(&lock);
}

int stk_foreign_add(const char *what)
{
    stk_once_run(&once, make_lock);
    stk_mutex_lock(&lock);
    int n = n_all, i = 0;
    while (i < n && strncmp(all[i].what, what, strlen(what)) != 0)
        i++;
    if (i == n && n < MOST) {
        snprintf(all[i].what, sizeof(all[i].what), "%s", what);
        n_all = n + 1;
    }
    stk_mutex_unlock(&lock);
    return i < MOST ? i : -1;
}

typedef struct search {
    uintptr_t address, begin, end;
} search;

static int look(struct dl_phdr_info *info, size_t size, void *p)
{
    search *s = p;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = at + info->dlpi_phdr[i].p_memsz;
        begin = at < begin ? at : begin;
        end = to > end ? to : end;
    }
    if (s->address < begin || s->address >= end) return 0;
    s->begin = begin;
    s->end = end;
    return 1;
}

void stk_foreign_found(int number, const char *what, const void *address)
{
    search s = {.address = (uintptr_t)address};
    if (number < 0) return;
    dl_iterate_phdr(look, &s);
    stk_mutex_lock(&lock);
    all[number].begin = s.begin;
    all[number].end = s.end;
    snprintf(all[number].what, sizeof(all[number].what), "%s", what);
    stk_mutex_unlock(&lock);
}

void stk_foreign_enter(int number, const char *doing)
{
    current = (call){number, doing};
}

void stk_foreign_leave(void)
{
    current = (call){-1, NULL};
}

const char *stk_foreign_at(const void *pc, const char **doing)
{
    *doing = current.number < 0 ? NULL : current.doing;
    if (current.number >= 0) return all[current.number].what;
    for (int i = 0; i < n_all; i++)
        if ((uintptr_t)pc >= all[i].begin && (uintptr_t)pc < all[i].end) return all[i].what;
    return NULL;
}
