/* A stand-in for cuBLASLt: what Stoker uses of it, by NVIDIA's documents, and "not supported" or misuse for all else.
 * Products are work of the played driver's streams, or of its graphs.
 *
 * STOKER_PLAY_WAYS   how many ways the heuristic proposes for each product; 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/play/api.h"
#include "device/play/product.h"

enum { WELL = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15, COMPUTE_F32 = 68, COMPUTE_TF32 = 77 };
enum { WORKSPACE_BYTES = 8192, LARGE_K = 256, MANY_WAYS = 64 };

typedef struct library {
    int is_loaded; /* its kernels are, which happens with the first product */
} library;

typedef struct operation {
    int32_t transpose[3], epilogue, bias_type, tf32;
    uint64_t bias;
} operation;

typedef struct layout {
    int32_t type, n_batch;
    int64_t rows, columns, ld, stride;
} layout;

typedef struct preference {
    uint64_t most_workspace;
    uint32_t reductions, alignment[4];
} preference;

/* What a way remembers of the product that it was proposed for; it is kept for years, on disk. */
typedef struct way {
    uint64_t mark, shape, number, workspace, alignment[4];
} way;

typedef struct result {
    way way;
    size_t workspace_bytes;
    int state;
    float n_waves;
    int reserved[4];
} result;

static const uint64_t way_mark = 0x7761792d706c6179;

#define EXPORT(name) PLAY_EXPORT int name
EXPORT(cublasLtCreate)(library **out);
EXPORT(cublasLtDestroy)(library *l);
PLAY_EXPORT size_t cublasLtGetVersion(void);
EXPORT(cublasLtMatmulDescCreate)(operation **out, int compute, int scale_type);
EXPORT(cublasLtMatmulDescDestroy)(operation *o);
EXPORT(cublasLtMatmulDescSetAttribute)(operation *o, int what, const void *value, size_t bytes);
EXPORT(cublasLtMatrixLayoutCreate)(layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld);
EXPORT(cublasLtMatrixLayoutDestroy)(layout *l);
EXPORT(cublasLtMatrixLayoutSetAttribute)(layout *l, int what, const void *value, size_t bytes);
EXPORT(cublasLtMatmulPreferenceCreate)(preference **out);
EXPORT(cublasLtMatmulPreferenceDestroy)(preference *p);
EXPORT(cublasLtMatmulPreferenceSetAttribute)(preference *p, int what, const void *value, size_t bytes);
EXPORT(cublasLtMatmulAlgoGetHeuristic)
(library *l, operation *o, layout *a, layout *b, layout *c, layout *d, preference *p, int n_wanted, result *out,
 int *n_out);
EXPORT(cublasLtMatmul)
(library *l, operation *o, const void *alpha, const void *a, layout *al, const void *b, layout *bl, const void *beta,
 const void *c, layout *cl, void *d, layout *dl, const way *w, void *workspace, size_t workspace_bytes, handle stream);

/* --- making and closing --- */

static int make(void *out, size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p) abort();
    memcpy(out, &p, sizeof(p));
    return WELL;
}

static int misuse(const char *text)
{
    stk_play_misuse(text);
    return INVALID_VALUE;
}

/* A value of an attribute: exactly so many bytes. */
static int take(void *to, size_t wanted, const void *value, size_t bytes)
{
    if (bytes != wanted || !value) return misuse("cuBLASLt: a value of an attribute has another size");
    memcpy(to, value, bytes);
    return WELL;
}

int cublasLtCreate(library **out)
{
    return make(out, sizeof(**out));
}

int cublasLtDestroy(library *l)
{
    free(l);
    return WELL;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtMatmulDescCreate(operation **out, int compute, int scale_type)
{
    if ((compute != COMPUTE_F32 && compute != COMPUTE_TF32) || scale_type != TYPE_F32)
        return misuse("cuBLASLt: only sums in f32 are played");
    make(out, sizeof(**out));
    (*out)->epilogue = 1;
    (*out)->bias_type = -1;
    (*out)->tf32 = compute == COMPUTE_TF32;
    return WELL;
}

int cublasLtMatmulDescDestroy(operation *o)
{
    free(o);
    return WELL;
}

int cublasLtMatmulDescSetAttribute(operation *o, int what, const void *value, size_t bytes)
{
    switch (what) {
    case 3:
    case 4: return take(&o->transpose[what - 3], sizeof(int32_t), value, bytes);
    case 7: return take(&o->epilogue, sizeof(int32_t), value, bytes);
    case 8: return take(&o->bias, sizeof(o->bias), value, bytes);
    case 26: return take(&o->bias_type, sizeof(int32_t), value, bytes);
    default: return misuse("cuBLASLt: an attribute of an operation that is not played");
    }
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    make(out, sizeof(**out));
    **out = (layout){.type = type, .n_batch = 1, .rows = (int64_t)rows, .columns = (int64_t)columns, .ld = ld};
    return WELL;
}

int cublasLtMatrixLayoutDestroy(layout *l)
{
    free(l);
    return WELL;
}

int cublasLtMatrixLayoutSetAttribute(layout *l, int what, const void *value, size_t bytes)
{
    if (what == 5) return take(&l->n_batch, sizeof(int32_t), value, bytes);
    if (what == 6) return take(&l->stride, sizeof(int64_t), value, bytes);
    return misuse("cuBLASLt: an attribute of a layout that is not played");
}

int cublasLtMatmulPreferenceCreate(preference **out)
{
    make(out, sizeof(**out));
    **out = (preference){.reductions = 7, .alignment = {256, 256, 256, 256}};
    return WELL;
}

int cublasLtMatmulPreferenceDestroy(preference *p)
{
    free(p);
    return WELL;
}

int cublasLtMatmulPreferenceSetAttribute(preference *p, int what, const void *value, size_t bytes)
{
    if (what == 1) return take(&p->most_workspace, sizeof(uint64_t), value, bytes);
    if (what == 3) return take(&p->reductions, sizeof(uint32_t), value, bytes);
    if (what >= 5 && what <= 8) return take(&p->alignment[what - 5], sizeof(uint32_t), value, bytes);
    return misuse("cuBLASLt: an attribute of a preference that is not played");
}

/* --- a product --- */

static int is_type(int type)
{
    return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16;
}

static int is_stored(const layout *l, int64_t rows, int64_t columns, int32_t n_batch)
{
    return l->rows == rows && l->columns == columns && l->ld >= rows && l->n_batch == n_batch;
}

/* WELL; or why it is none. */
static int check(const operation *o, const layout *a, const layout *b, const layout *c, const layout *d,
                 play_product *p)
{
    *p = (play_product){.n_batch = d->n_batch, .m = d->rows, .n = d->columns};
    p->transpose_a = o->transpose[0];
    p->transpose_b = o->transpose[1];
    p->k = p->transpose_a ? a->rows : a->columns;
    if (p->transpose_a < 0 || p->transpose_a > 1 || p->transpose_b < 0 || p->transpose_b > 1)
        return misuse("cuBLASLt: a transpose that is not played");
    if (!is_stored(a, p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k, d->n_batch) ||
        !is_stored(b, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n, d->n_batch) ||
        !is_stored(c, p->m, p->n, d->n_batch) || !is_stored(d, p->m, p->n, d->n_batch) || p->m < 1 || p->n < 1 ||
        p->k < 1)
        return misuse("cuBLASLt: layouts do not fit each other");
    if (!is_type(a->type) || a->type != b->type || c->type != d->type) return NOT_SUPPORTED;
    if (d->type != a->type && d->type != TYPE_F32) return NOT_SUPPORTED;
    if (o->tf32 && a->type != TYPE_F32) return NOT_SUPPORTED;
    p->type = a->type;
    p->type_d = d->type;
    p->has_bias = o->epilogue & 4;
    p->relu = o->epilogue & 2;
    p->gelu = o->epilogue & 32;
    p->tf32 = o->tf32;
    p->type_bias = o->bias_type < 0 ? d->type : o->bias_type;
    if (o->epilogue & ~(1 | 2 | 4 | 32) || (p->relu && p->gelu) || p->type_bias != d->type) return NOT_SUPPORTED;
    p->a = (play_matrix){.ld = a->ld, .stride = a->stride};
    p->b = (play_matrix){.ld = b->ld, .stride = b->stride};
    p->c = (play_matrix){.ld = c->ld, .stride = c->stride};
    p->d = (play_matrix){.ld = d->ld, .stride = d->stride};
    return WELL;
}

static uint64_t hash_shape(const play_product *p, int epilogue)
{
    const int64_t all[] = {p->n_batch,   p->m,           p->n,           p->k,     p->a.ld,
                           p->b.ld,      p->c.ld,        p->d.ld,        p->type,  p->type_d,
                           p->type_bias, p->transpose_a, p->transpose_b, epilogue, p->tf32};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        hash = (hash ^ (uint64_t)all[i]) * 1099511628211u;
    return hash;
}

int cublasLtMatmulAlgoGetHeuristic(library *l, operation *o, layout *a, layout *b, layout *c, layout *d, preference *p,
                                   int n_wanted, result *out, int *n_out)
{
    play_product product;
    const char *ways = getenv("STOKER_PLAY_WAYS");
    int n = ways ? atoi(ways) : 1;
    *n_out = 0;
    if (!l || n_wanted <= 0) return INVALID_VALUE;
    int code = check(o, a, b, c, d, &product);
    if (code) return code;
    for (int i = 0; i < n && i < n_wanted && i < MANY_WAYS; i++) {
        const size_t wanted = product.k >= LARGE_K ? (size_t)WORKSPACE_BYTES * (size_t)(i + 1) : 0;
        out[i] = (result){.way = {.mark = way_mark, .shape = hash_shape(&product, o->epilogue), .number = (uint64_t)i},
                          .n_waves = 1};
        if (wanted <= p->most_workspace && (p->reductions & 2)) out[i].workspace_bytes = wanted;
        out[i].way.workspace = out[i].workspace_bytes;
        for (int j = 0; j < 4; j++)
            out[i].way.alignment[j] = p->alignment[j];
        *n_out = i + 1;
    }
    return WELL;
}

/* --- doing it --- */

static play_range range_of(const play_matrix *m, int64_t rows, int64_t columns, int64_t n_batch, int type)
{
    const int64_t n = (n_batch - 1) * m->stride + (columns - 1) * m->ld + rows;
    return (play_range){m->at, (size_t)n * play_type_bytes(type)};
}

static int list_ranges(const play_product *p, play_range *out)
{
    int n = 0;
    out[n++] = range_of(&p->a, p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k, p->n_batch, p->type);
    out[n++] = range_of(&p->b, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n, p->n_batch, p->type);
    out[n++] = range_of(&p->d, p->m, p->n, p->n_batch, p->type_d);
    if (p->beta != 0) out[n++] = range_of(&p->c, p->m, p->n, p->n_batch, p->type_d);
    if (p->has_bias) out[n++] = (play_range){p->bias, (size_t)p->m * play_type_bytes(p->type_bias)};
    if (p->workspace_bytes) out[n++] = (play_range){p->workspace, p->workspace_bytes};
    return n;
}

static int overlap(const play_range *a, const play_range *b)
{
    return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

/* What a real product would not complain of, and do wrong. */
static int check_memory(const play_product *p, const way *w, const play_range *range, int n)
{
    const uint64_t at[4] = {p->a.at, p->b.at, p->beta != 0 ? p->c.at : 0, p->d.at};
    for (int i = 0; i < 4; i++)
        if (at[i] % w->alignment[i]) return misuse("cuBLASLt: a matrix is less aligned than its way was asked for");
    for (int i = 0; i < n; i++) {
        const int is_in_place = i == 3 && p->beta != 0 && p->c.at == p->d.at && p->c.ld == p->d.ld;
        if (i != 2 && !is_in_place && overlap(&range[2], &range[i]))
            return misuse("cuBLASLt: what is written is read as well");
    }
    return WELL;
}

static int take_way(const way *w, play_product *p, int epilogue, void *workspace, size_t bytes)
{
    if (!w || w->mark != way_mark || w->shape != hash_shape(p, epilogue))
        return misuse("cuBLASLt: another product's way");
    if (w->workspace > bytes || (uintptr_t)workspace % 256) return misuse("cuBLASLt: the workspace is too small");
    p->workspace = (uint64_t)(uintptr_t)workspace;
    p->workspace_bytes = w->workspace;
    return WELL;
}

int cublasLtMatmul(library *l, operation *o, const void *alpha, const void *a, layout *al, const void *b, layout *bl,
                   const void *beta, const void *c, layout *cl, void *d, layout *dl, const way *w, void *workspace,
                   size_t workspace_bytes, handle stream)
{
    play_product p;
    play_range range[6];
    int code = check(o, al, bl, cl, dl, &p);
    if (code) return code;
    if (!l->is_loaded && stk_play_load_library()) return EXECUTION_FAILED;
    l->is_loaded = 1;
    memcpy(&p.alpha, alpha, sizeof(float));
    memcpy(&p.beta, beta, sizeof(float));
    p.a.at = (uint64_t)(uintptr_t)a;
    p.b.at = (uint64_t)(uintptr_t)b;
    p.c.at = (uint64_t)(uintptr_t)c;
    p.d.at = (uint64_t)(uintptr_t)d;
    p.bias = o->bias;
    code = take_way(w, &p, o->epilogue, workspace, workspace_bytes);
    if (code) return code;
    const int n = list_ranges(&p, range);
    code = check_memory(&p, w, range, n);
    if (code) return code;
    return stk_play_enqueue(stream, play_multiply, &p, sizeof(p), range, n, "cublasLtMatmul") ? EXECUTION_FAILED : WELL;
}
