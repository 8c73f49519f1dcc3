/* See remote/objects.h. */
#include "data/remote/objects.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/name_table.h"
#include "base/thread.h"
#include "data/remote/cache.h"
#include "data/remote/fetcher.h"
#include "data/remote/http.h"
#include "data/remote/listing.h"
#include "data/remote/request.h"
#include "data/remote/sign.h"
#include "data/remote/store.h"

/* A store gives a thousand objects with each part. */
enum { SCHEME_BYTES = 5, MOST_TOKEN_BYTES = 8192, MOST_PARTS = 50000, MOST_OBJECTS = 1 << 25 };
enum { WAIT_MS = 100 }; /* until one who waits looks whether it still should */

bool stk_objects_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

/* --- adding --- */

/* root and key make the path. file: what is known of its state. store: of stk_store_identity. */
static stk_status add(stk_objects *out, const char *root, size_t n_root, const char *key, const char *store,
                      const stk_cache_key *file)
{
    const char *etag = file->etag;
    size_t n_key = strlen(key), n_etag = strlen(etag);
    if (out->n == MOST_OBJECTS)
        return stk_fail(STK_UNSUPPORTED, "more than %d objects; pack them into shards", MOST_OBJECTS);
    if (out->n == out->capacity) {
        size_t grown = 2 * out->capacity + 64;
        stk_object *p = realloc(out->object, grown * sizeof(*p));
        if (!p) return stk_fail_memory(grown * sizeof(*p));
        out->object = p;
        out->capacity = grown;
    }
    char *path = malloc(n_root + n_key + n_etag + 2);
    if (!path) return stk_fail_memory(n_root + n_key + n_etag + 2);
    memcpy(path, root, n_root);
    memcpy(path + n_root, key, n_key + 1);
    memcpy(path + n_root + n_key + 1, etag, n_etag + 1);
    stk_object *object = &out->object[out->n++];
    *object = (stk_object){path, file->n_bytes, {0}};
    return stk_cache_id(&(stk_cache_key){store, path, etag, file->modified, file->n_bytes}, object->id);
}

/* What of a listing is wanted. */
typedef struct taker {
    stk_objects *out;
    const char *root; /* "s3://BUCKET/" */
    size_t n_root;
    const char *pattern; /* of the key; NULL: all */
    const char *store;
} taker;

static stk_status take(void *user, const stk_listed *object)
{
    taker *t = user;
    size_t n = strlen(object->key);
    if (object->key[n - 1] == '/') return STK_OK; /* a folder that somebody has made */
    if (t->pattern && strcmp(t->pattern, object->key) != 0 &&
        fnmatch(t->pattern, object->key, FNM_PATHNAME | FNM_PERIOD) != 0)
        return STK_OK;
    stk_cache_key file = {.etag = object->etag, .modified = "", .n_bytes = object->n_bytes};
    return add(t->out, t->root, t->n_root, object->key, t->store, &file);
}

/* What the next part of a list is asked for by. One that came before would lead round in a circle. */
typedef struct tokens {
    stk_name_table seen;
    stk_arena *arena; /* of those seen */
    int n_parts;
} tokens;

static stk_status check_token(tokens *t, const stk_text *token)
{
    if (token->n > MOST_TOKEN_BYTES)
        return stk_fail(STK_CORRUPT, "its list goes on behind a token of %zu bytes, and %d are the most", token->n,
                        MOST_TOKEN_BYTES);
    if (++t->n_parts == MOST_PARTS)
        return stk_fail(STK_UNSUPPORTED, "its list has more than %d parts; name a folder further down", MOST_PARTS);
    if (stk_name_table_find(&t->seen, stk_text_get(token)) >= 0)
        return stk_fail(STK_CORRUPT, "its list has no end: after %d parts the store names one that came before",
                        t->n_parts);
    if (!t->arena && !(t->arena = stk_arena_new())) return stk_fail_memory(token->n);
    const char *kept = stk_arena_text(t->arena, stk_text_get(token));
    return kept ? stk_name_table_add(&t->seen, kept, 0) : stk_fail_memory(token->n);
}

/* The keys that begin with n bytes of prefix. flat: without those that have a slash after it. */
static stk_status list(const char *path, const char *prefix, size_t n, bool flat, taker *t)
{
    stk_text token = {0}, query = {0}, answer = {0};
    tokens seen = {.arena = NULL};
    stk_status status;
    do {
        stk_text_free(&query);
        stk_text_free(&answer);
        if (token.n) {
            stk_text_add(&query, "continuation-token=");
            stk_percent_encode(token.data, token.n, false, &query);
            stk_text_add(&query, "&");
        }
        stk_text_add(&query, "%slist-type=2&prefix=", flat ? "delimiter=%2F&" : "");
        stk_percent_encode(prefix, n, false, &query);
        STK_TRY(stk_text_status(&query));
        STK_TRY(stk_http_query(path, query.data, &answer));
        stk_text_free(&token);
        STK_TRY(stk_listing_parse((stk_span){(const uint8_t *)answer.data, answer.n}, take, t, &token));
        STK_TRY(stk_text_status(&token)); /* or what follows would be missing */
        if (token.n) STK_TRY(check_token(&seen, &token));
    } while (token.n);
done:
    stk_name_table_free(&seen.seen);
    stk_arena_free(seen.arena);
    stk_text_free(&token);
    stk_text_free(&query);
    stk_text_free(&answer);
    return status == STK_OK || strstr(stk_error_text(), path) ? status : stk_fail_prefix(status, "'%s': ", path);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const stk_object *)a)->path, ((const stk_object *)b)->path);
}

static stk_status list_sorted(const char *path, const char *pattern, size_t n_prefix, bool flat, stk_objects *out)
{
    const char *slash = strchr(path + SCHEME_BYTES, '/');
    if (!slash) return stk_fail(STK_INVALID, "'%s' names a bucket and no object", path);
    stk_text store = {0};
    stk_status status = stk_store_identity(path, &store);
    taker t = {out, path, (size_t)(slash + 1 - path), pattern, stk_text_get(&store)};
    size_t before = out->n;
    if (status == STK_OK) status = list(path, slash + 1, n_prefix, flat, &t);
    stk_text_free(&store);
    STK_RETURN_IF_ERROR(status);
    if (out->n > before) qsort(out->object + before, out->n - before, sizeof(*out->object), compare);
    return STK_OK;
}

stk_status stk_objects_match(const char *pattern, stk_objects *out)
{
    const char *slash = strchr(pattern + SCHEME_BYTES, '/'), *key = slash ? slash + 1 : "";
    size_t n_plain = strcspn(key, "*?["), before = out->n;
    STK_RETURN_IF_ERROR(list_sorted(pattern, key, n_plain, !strchr(key + n_plain, '/'), out));
    return out->n > before ? STK_OK : stk_fail(STK_NOT_FOUND, "no object matches '%s'", pattern);
}

stk_status stk_objects_below(const char *folder, stk_objects *out)
{
    size_t n = strlen(folder);
    char *path = malloc(n + 2);
    if (!path) return stk_fail_memory(n);
    memcpy(path, folder, n + 1);
    if (path[n - 1] != '/') memcpy(path + n++, "/", 2);
    const char *slash = strchr(path + SCHEME_BYTES, '/');
    stk_status status = list_sorted(path, NULL, (size_t)(path + n - (slash + 1)), false, out);
    free(path);
    return status;
}

stk_status stk_objects_find(const char *path, stk_objects *out)
{
    stk_http_file file;
    size_t before = out->n;
    bool is_store = stk_store_of(path) != STK_STORE_NONE; /* others do not tell what they hold */
    if (is_store && stk_objects_is_pattern(path)) return stk_objects_match(path, out);
    if (is_store) STK_RETURN_IF_ERROR(stk_objects_below(path, out));
    if (out->n > before) return STK_OK;
    STK_RETURN_IF_ERROR(stk_http_stat(path, &file));
    stk_text store = {0};
    stk_cache_key state = {.etag = file.etag, .modified = file.modified, .n_bytes = file.n_bytes};
    stk_status status = stk_store_identity(path, &store);
    if (status == STK_OK) status = add(out, path, strlen(path), "", stk_text_get(&store), &state);
    stk_text_free(&store);
    return status;
}

/* --- reading --- */

typedef enum object_state { OBJECT_UNKNOWN, OBJECT_QUEUED, OBJECT_FETCHED_NOW, OBJECT_THERE } object_state;

struct stk_objects_ahead {
    const stk_object *object;
    stk_mutex lock; /* guards what follows */
    stk_cond fetched;
    bool loses;      /* objects that were there have gone: the cache is smaller than what is read */
    uint8_t state[]; /* [n], an object_state */
};

static stk_block_place place_of(const stk_object *o)
{
    return (stk_block_place){{o->id[0], o->id[1]}, 0, (size_t)o->n_bytes};
}

/* From the cache, or into it. once: nothing is tried again. */
static stk_status read_object(const stk_object *o, bool once, void *dst, bool *was_there)
{
    const char *etag = o->path + strlen(o->path) + 1;
    stk_http_file file = {.n_bytes = o->n_bytes};
    stk_block_place place = place_of(o);
    double latency_s;
    *was_there = o->n_bytes == 0 || stk_cache_read_whole(&place, dst);
    if (*was_there) return STK_OK;
    if (!once) stk_fetcher_note_wait();
    if (strlen(etag) < sizeof(file.etag)) memcpy(file.etag, etag, strlen(etag) + 1);
    STK_RETURN_IF_ERROR(stk_http_read(o->path, &file, 0, (size_t)o->n_bytes, dst, once, &latency_s, NULL));
    stk_fetcher_note_latency(latency_s);
    stk_cache_write(&place, dst);
    return STK_OK;
}

static void set_state(stk_objects_ahead *a, size_t i, object_state state)
{
    stk_mutex_lock(&a->lock);
    a->state[i] = (uint8_t)state;
    stk_cond_broadcast(&a->fetched);
    stk_mutex_unlock(&a->lock);
}

/* One that was queued, in a thread of the fetcher. */
static void bring_object(void *owner, uint64_t i)
{
    stk_objects_ahead *a = owner;
    stk_mutex_lock(&a->lock);
    bool wanted = a->state[i] == OBJECT_QUEUED;
    if (wanted) a->state[i] = OBJECT_FETCHED_NOW;
    stk_mutex_unlock(&a->lock);
    if (!wanted) return;
    void *bytes = malloc((size_t)a->object[i].n_bytes + 1);
    bool was_there, ok = bytes && read_object(&a->object[i], true, bytes, &was_there) == STK_OK;
    free(bytes);
    set_state(a, i, ok ? OBJECT_THERE : OBJECT_UNKNOWN);
}

stk_status stk_objects_start(stk_objects *objects)
{
    stk_status status;
    bool has_lock = false, has_cond = false;
    stk_objects_ahead *a = calloc(1, sizeof(*a) + objects->n);
    if (!a) return stk_fail_memory(sizeof(*a) + objects->n);
    a->object = objects->object;
    STK_TRY(stk_mutex_init(&a->lock));
    has_lock = true;
    STK_TRY(stk_cond_init(&a->fetched));
    has_cond = true;
    STK_TRY(stk_fetcher_enter());
    objects->ahead = a;
    return STK_OK;
done:
    if (has_cond) stk_cond_destroy(&a->fetched);
    if (has_lock) stk_mutex_destroy(&a->lock);
    free(a);
    return status;
}

static void stop(stk_objects_ahead *a)
{
    if (!a) return;
    stk_fetcher_leave(a);
    stk_cond_destroy(&a->fetched);
    stk_mutex_destroy(&a->lock);
    free(a);
}

bool stk_objects_fetch(const stk_objects *objects, size_t i)
{
    stk_objects_ahead *a = objects->ahead;
    stk_mutex_lock(&a->lock);
    stk_block_place place = place_of(&a->object[i]);
    bool is_gone = a->loses && a->state[i] == OBJECT_THERE && !stk_cache_has(&place);
    bool is_new = is_gone || a->state[i] == OBJECT_UNKNOWN;
    if (is_new) a->state[i] = OBJECT_QUEUED;
    stk_mutex_unlock(&a->lock);
    if (!is_new || stk_fetcher_add(bring_object, a, i)) return true;
    stk_mutex_lock(&a->lock);
    if (a->state[i] == OBJECT_QUEUED) a->state[i] = OBJECT_UNKNOWN;
    stk_mutex_unlock(&a->lock);
    return false;
}

stk_status stk_objects_read(const stk_objects *objects, size_t i, void *dst)
{
    stk_objects_ahead *a = objects->ahead;
    bool was_there;
    if (!a) return read_object(&objects->object[i], false, dst, &was_there);
    stk_mutex_lock(&a->lock);
    bool waits = a->state[i] == OBJECT_FETCHED_NOW;
    while (a->state[i] == OBJECT_FETCHED_NOW && stk_request_seconds_left() > 0)
        (void)stk_cond_wait_ms(&a->fetched, &a->lock, WAIT_MS);
    if (a->state[i] == OBJECT_FETCHED_NOW) {
        stk_mutex_unlock(&a->lock);
        return stk_fail(STK_IO, "cannot read '%s': it did not come within the time that was given",
                        objects->object[i].path);
    }
    bool was_read = a->state[i] == OBJECT_THERE;
    a->state[i] = OBJECT_THERE; /* as soon as this thread has it, which comes before the queue */
    stk_mutex_unlock(&a->lock);
    if (waits) stk_fetcher_note_wait();
    stk_status status = read_object(&objects->object[i], false, dst, &was_there);
    if (status == STK_OK && (was_there || !was_read)) return STK_OK;
    stk_mutex_lock(&a->lock);
    if (status != STK_OK) a->state[i] = OBJECT_UNKNOWN;
    a->loses = a->loses || status == STK_OK;
    stk_mutex_unlock(&a->lock);
    return status;
}

void stk_objects_free(stk_objects *objects)
{
    stop(objects->ahead);
    for (size_t i = 0; i < objects->n; i++)
        free(objects->object[i].path);
    free(objects->object);
    *objects = (stk_objects){0};
}
