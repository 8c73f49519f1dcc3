/* A loader at work allocates nothing: every allocation of the program is counted after the first epoch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "data/fake.h"
#include "data/ragged_make.h"
#include "stoker/data/loader.h"
#include "stoker/data/regroup.h"

/* Sanitizers bring their own allocator, and musl has none below malloc to call. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_COUNT 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef CAN_COUNT
#endif
#endif
#endif

static _Atomic int n_allocs;

#ifdef CAN_COUNT
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&n_allocs, 1);
    return __libc_memalign(alignment, bytes);
}
#endif

/* Takes the data set. */
static void allocates_nothing(stk_dataset *dataset)
{
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader_config config = {.n_threads = 3};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    assert_true(atomic_load(&n_allocs) > 0);
    int64_t n_batches = stk_dataset_n_batches(dataset);
    /* Each worker's memory grows with its first rows; the scheduler may keep one of them from its first for long. */
    int n_before = -1, n_after = 0;
    for (int try = 0; try < 10 && n_before != n_after; try++) {
        n_before = atomic_load(&n_allocs);
        for (int64_t i = 0; i < 10 * n_batches; i++)
            stk_batch_release(stk_loader_next(loader));
        n_after = atomic_load(&n_allocs);
    }
    assert_int_equal(n_before, n_after);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void a_loader_at_work_allocates_nothing(void **state)
{
    (void)state;
#ifndef CAN_COUNT
    print_message("SKIP: sanitizers bring their own malloc\n");
    skip();
#endif
    stk_dataset *dataset = make_fake(500, NULL);
    stk_dataset_split(dataset, 0.8, false, 1);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), fake_fit(), fake_noise(), fake_widen(), NULL);
    stk_dataset_batch(dataset, 16, false);
    allocates_nothing(dataset);
}

/* Neither do plans of epochs, padding and packed rows. */
static void batches_by_length_allocate_nothing(void **state)
{
    (void)state;
#ifndef CAN_COUNT
    print_message("SKIP: sanitizers bring their own malloc\n");
    skip();
#endif
    int64_t lengths[500];
    for (int64_t i = 0; i < 500; i++)
        lengths[i] = i * 37 % 89;
    stk_dataset *dataset = make_ragged(lengths, 500);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_padded_batch(dataset, 16, false, NULL, 0);
    allocates_nothing(dataset);
    dataset = make_ragged(lengths, 500);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_bucket_batch(dataset, &(stk_buckets){.tokens = 500}, NULL, 0);
    allocates_nothing(dataset);
    static const char *const fields[] = {"tokens"};
    dataset = make_ragged(lengths, 500);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = 128, .fields = fields, .n_fields = 1});
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_batch(dataset, 8, false);
    allocates_nothing(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_loader_at_work_allocates_nothing),
                                       cmocka_unit_test(batches_by_length_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
