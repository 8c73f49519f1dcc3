/* See data/source/generator.h. */
#include "data/source/generator.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/source/fields.h"
#include "data/source/reader.h"

/* Where the user's functions stand. */
typedef struct position {
    stk_sample_generator how;
    atomic_bool in_use;
    bool begun, ended;
    uint64_t epoch;
    int64_t next; /* the record that comes next */
} position;

typedef struct generator_source {
    stk_source base;
    position *at; /* readers move it, while the source stays as it is */
} generator_source;

static position *position_of(const stk_source *source)
{
    return ((const generator_source *)source)->at;
}

stk_status stk_generator_attach(const stk_source *source)
{
    position *at = position_of(source);
    if (atomic_exchange(&at->in_use, true))
        return stk_fail(STK_BUSY, "the generator is in use by another loader: close that first, or make a data set "
                                  "with a generator for each");
    at->begun = false;
    return STK_OK;
}

void stk_generator_detach(const stk_source *source)
{
    atomic_store(&position_of(source)->in_use, false);
}

/* With `seek`, as near to the record as it gets at once; else at the epoch's start. */
static stk_status begin_epoch(position *at, uint64_t epoch, int64_t i_record)
{
    bool seeks = at->how.seek && i_record > 0;
    at->begun = false;
    stk_error_clear();
    stk_status status =
        seeks ? at->how.seek(at->how.user, (int64_t)epoch, i_record) : at->how.begin(at->how.user, (int64_t)epoch);
    if (status != STK_OK) {
        stk_fail_user(status, seeks ? "the generator's 'seek'" : "the generator's 'begin'");
        return stk_fail(status, "cannot begin epoch %lld of the generator: %s", (long long)epoch, stk_error_text());
    }
    at->begun = true;
    at->ended = false;
    at->epoch = epoch;
    at->next = seeks ? i_record : 0;
    return STK_OK;
}

/* An error uses up a sample like any other, so that the numbers of later ones stay. */
static stk_status make_next(position *at, void *const *place)
{
    bool ended = false;
    stk_error_clear();
    stk_status status = at->how.next(at->how.user, place, &ended);
    at->ended = status == STK_OK && ended;
    if (!at->ended) at->next++;
    return status == STK_OK ? STK_OK : stk_fail_user(status, "the generator");
}

stk_status stk_generator_read(const stk_source *source, uint64_t epoch, int64_t i_record, void *const *place,
                              bool *ended, bool *fatal)
{
    position *at = position_of(source);
    stk_status status = STK_OK;
    *ended = false;
    *fatal = true;
    if (!at->begun || epoch != at->epoch || i_record < at->next) STK_RETURN_IF_ERROR(begin_epoch(at, epoch, i_record));
    while (!at->ended && at->next <= i_record) {
        bool is_wanted = at->next == i_record;
        status = make_next(at, place);
        if (is_wanted && !at->ended) break;
        /* What is passed over may be corrupt. */
        if (status != STK_OK && !stk_record_can_skip(status)) return status;
    }
    *fatal = status != STK_OK && !stk_record_can_skip(status);
    if (!at->ended) return status;
    *ended = source->is_open;
    if (source->is_open) return STK_OK;
    *fatal = true;
    return stk_fail(STK_MISMATCH, "the generator ended after %lld samples of epoch %lld, and has promised %lld",
                    (long long)at->next, (long long)epoch, (long long)source->n_records);
}

/* --- the class --- */

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    (void)source, (void)scratch, (void)item;
    return stk_fail(STK_UNSUPPORTED,
                    "sample %lld is asked for by its number, and a generator's come one after the other: make them by "
                    "number (stk_dataset_function)",
                    (long long)i_record);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "sample %lld", (long long)i_record);
}

static void close_source(stk_source *source)
{
    free(position_of(source));
    free(source);
}

static const stk_source_class class_generator = {
    .name = "generator", .read = read_record, .name_record = name_record, .close = close_source};

static stk_status check_generator(const stk_sample_generator *generator)
{
    if (!generator || !generator->begin || !generator->next)
        return stk_fail(STK_INVALID, "a generator needs both functions, 'begin' and 'next'");
    if (generator->n_samples >= 0 && generator->n_samples < STK_OPEN_COUNT) return STK_OK;
    return stk_fail(STK_INVALID, "'n_samples' of the generator is %lld: 0 where it is not known",
                    (long long)generator->n_samples);
}

stk_status stk_source_open_generator(const stk_array_field *fields, int n_fields, const stk_sample_generator *generator,
                                     stk_source **out)
{
    STK_RETURN_IF_ERROR(check_generator(generator));
    stk_status status = STK_OK;
    generator_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->at = calloc(1, sizeof(*s->at));
    if (!s->at) STK_TRY(stk_fail_memory(sizeof(*s->at)));
    s->at->how = *generator;
    atomic_init(&s->at->in_use, false);
    s->base.class = &class_generator;
    s->base.in_order = true;
    s->base.is_open = generator->n_samples == 0;
    STK_TRY(stk_source_set_fields(&s->base, s->base.is_open ? STK_OPEN_COUNT : generator->n_samples, fields, n_fields));
    *out = &s->base;
    return STK_OK;
done:
    free(s->at);
    free(s);
    return status;
}
