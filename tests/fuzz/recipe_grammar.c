/* See fuzz/recipe_grammar.h. Longer than most: the schema and what it does not say draw from one another. */
#include "fuzz/recipe_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/recipe.h"
#include "settings/schema.h"

/* What samples are like; it decides about the models and losses that are likely to fit. */
typedef enum sample_kind { ROWS, IMAGES, VOLUMES, TOKENS, N_KINDS } sample_kind;

typedef struct grammar {
    fuzz_draw *draw;
    stk_text *out;
    sample_kind kind;
    int depth, n_classes, side, vocabulary, n_words;
    const char *loss;   /* NULL: none is said */
    bool wants_numbers; /* labels are no class numbers */
    bool is_dense;      /* a label for each pixel or token */
} grammar;

enum { MOST_DEPTH = 7, MOST_WORDS = 300, MOST_SAMPLES = 64 };

static void add(grammar *g, const char *text)
{
    stk_text_add(g->out, "%s", text);
}

/* --- keys that are left out: they name files, or wait for something --- */

static bool is_left_out(const char *name)
{
    static const char *const names[] = {"cache",  "index",      "plugin",      "onnx",   "init",   "masked",
                                        "expect", "prometheus", "tensorboard", "device", "memory", "checkpoint",
                                        "name",   "scope",      "log",         "epochs", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static bool is_file_key(const char *name)
{
    static const char *const names[] = {"cache", "index", "plugin", "onnx", "weights", "masked", "tokenizer", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static bool is_made_source(const char *name)
{
    static const char *const names[] = {"synthetic", "concatenate", "zip", "interleave", "mix", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

/* Reads all records before the first step. */
static bool is_scan_key(const char *name)
{
    static const char *const names[] = {"filter", "pad", "pack", "unbatch", "windows", "whiten", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

typedef struct bounds {
    int64_t most_samples;
    bool scans, has_files;
} bounds;

static void look(const stk_yaml_node *node, bounds *b)
{
    for (const stk_yaml_node *child = node->child; child; child = child->next) {
        const char *key = child->key;
        if (key && is_file_key(key)) b->has_files = true;
        if (key && is_scan_key(key)) b->scans = true;
        if (key && !strcmp(key, "source"))
            b->has_files =
                b->has_files || child->kind != STK_YAML_MAP || !child->child || !is_made_source(child->child->key);
        if (key && (!strcmp(key, "samples") || !strcmp(key, "repeat")) && child->integer > b->most_samples)
            b->most_samples = child->integer;
        look(child, b);
    }
}

bool fuzz_recipe_is_bounded(const stk_yaml_node *node)
{
    bounds b = {0, false, false};
    look(node, &b);
    return !b.has_files && !(b.scans && b.most_samples > MOST_SAMPLES);
}

/* --- the schema as a grammar --- */

static void put(grammar *g, const stk_key *key);

static void put_int(grammar *g, const stk_key *key)
{
    static const char *const batch_keys[] = {"batch", "samples", "accumulate", "micro_batch", NULL};
    bool any = key->least == 0 && key->most == 0;
    int64_t least = any ? -3 : (int64_t)key->least, value = least + fuzz_below(g->draw, 8);
    for (int i = 0; batch_keys[i]; i++)
        if (!strcmp(key->name, batch_keys[i])) value = 1 + fuzz_below(g->draw, 16);
    if (!strcmp(key->name, "classes") || !strcmp(key->name, "rows")) value = g->n_classes;
    if (fuzz_chance(g->draw, 4)) value = any ? fuzz_wild(g->draw) : (int64_t)key->most;
    if (!any && (double)value > key->most) value = (int64_t)key->most;
    stk_text_add(g->out, "%lld", (long long)value);
}

static void put_real(grammar *g, const stk_key *key)
{
    static const double values[] = {0.5, 0.1, 1e-3, 0.9, 0.25, 1, 2, 0, 1e-30, 1e30, -1};
    bool any = key->least == 0 && key->most == 0 && !key->above;
    double x = values[fuzz_below(g->draw, fuzz_chance(g->draw, 12) ? 11 : 5)];
    if (!any && x < key->least) x = key->least;
    if (!any && key->most > key->least && x > key->most) x = key->most;
    stk_text_add(g->out, "%g", x);
}

static void put_text(grammar *g, const stk_key *key)
{
    static const char *const words[] = {"label", "x", "a", "image", "dense", "conv2d", "b", "loss", "accuracy"};
    if (!strcmp(key->name, "padding"))
        add(g, fuzz_chance(g->draw, 96) ? (fuzz_chance(g->draw, 128) ? "none" : "1") : "same");
    else
        add(g, words[fuzz_below(g->draw, 9)]);
}

static const stk_key *choose(grammar *g, const stk_key *parent)
{
    int n = 0;
    while (stk_key_at(parent, n))
        n++;
    for (int tries = 0; tries < 8; tries++) {
        const stk_key *key = stk_key_at(parent, fuzz_below(g->draw, n));
        bool nests = key->type == STK_KEY_MAP && (!strcmp(key->name, "residual") || !strcmp(key->name, "block"));
        if (!is_left_out(key->name) && !(nests && g->depth > MOST_DEPTH - 2)) return key;
    }
    return stk_key_at(parent, 0);
}

/* Without these a network is large, or does not know how many classes there are. */
static bool is_likely(const char *name)
{
    static const char *const names[] = {"classes", "hidden", "width", "embedding", "vocabulary", "length", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static void put_map(grammar *g, const stk_key *parent)
{
    const stk_key *keys;
    bool is_first = true;
    add(g, "{");
    for (int i = 0; (keys = stk_key_at(parent, i)); i++) {
        if (is_left_out(keys->name) && !keys->required) continue;
        if (!keys->required && !fuzz_chance(g->draw, is_likely(keys->name) ? 236 : 40)) continue;
        stk_text_add(g->out, "%s%s: ", is_first ? "" : ", ", keys->name);
        put(g, keys);
        is_first = false;
    }
    add(g, "}");
}

static void put_choice(grammar *g, const stk_key *key)
{
    const stk_key *one = choose(g, key);
    if (one->type == STK_KEY_NONE) {
        add(g, one->name);
        return;
    }
    stk_text_add(g->out, "{%s: ", one->name);
    put(g, one);
    add(g, "}");
}

static void put_list(grammar *g, const stk_key *key)
{
    int n = 1 + fuzz_below(g->draw, 3);
    add(g, "[");
    for (int i = 0; i < n; i++) {
        if (i) add(g, ", ");
        put(g, key->element);
    }
    add(g, "]");
}

static void put_every(grammar *g, const stk_key *key)
{
    stk_text_add(g->out, "%d %s", 1 + fuzz_below(g->draw, 3),
                 key->words || fuzz_chance(g->draw, 128) ? "steps" : "epochs");
}

static void put(grammar *g, const stk_key *key)
{
    int n = 0;
    if (++g->n_words > MOST_WORDS || g->depth > MOST_DEPTH) {
        add(g, "1");
        return;
    }
    g->depth++;
    switch (key->type) {
    case STK_KEY_BOOL: add(g, fuzz_chance(g->draw, 128) ? "true" : "false"); break;
    case STK_KEY_INT: put_int(g, key); break;
    case STK_KEY_REAL: put_real(g, key); break;
    case STK_KEY_TEXT: put_text(g, key); break;
    case STK_KEY_WORD:
        while (key->words[n])
            n++;
        add(g, key->words[fuzz_below(g->draw, n)]);
        break;
    case STK_KEY_SHARE: add(g, fuzz_chance(g->draw, 128) ? "50%" : "0.25"); break;
    case STK_KEY_MEMORY: add(g, fuzz_chance(g->draw, 128) ? "64MiB" : "auto"); break;
    case STK_KEY_EVERY: put_every(g, key); break;
    case STK_KEY_MAP: put_map(g, key); break;
    case STK_KEY_CHOICE: put_choice(g, key); break;
    case STK_KEY_LIST: put_list(g, key); break;
    case STK_KEY_NAMED:
        add(g, "{x: ");
        put(g, key->element);
        add(g, "}");
        break;
    default: add(g, "{}"); break;
    }
    g->depth--;
}

static const stk_key *find(const stk_key *parent, const char *name)
{
    const stk_key *key = stk_key_find(parent, name);
    if (!key) abort();
    return key;
}

/* "KEY: " and what the schema has for it; one: that member of a choice. */
static void put_key(grammar *g, const char *name, const char *one)
{
    const stk_key *key = find(&stk_recipe_key, name);
    stk_text_add(g->out, "%s: ", name);
    if (!one) {
        put(g, key);
        add(g, "\n");
        return;
    }
    key = find(key, one);
    stk_text_add(g->out, "{%s: ", one);
    if (key->type == STK_KEY_NONE)
        add(g, "{}");
    else
        put(g, key);
    add(g, "}\n");
}

/* --- samples --- */

static void put_label(grammar *g, const char *sides)
{
    if (g->is_dense) stk_text_add(g->out, ", label: {shape: [%s], below: %d}", sides, g->n_classes);
}

static void put_fields(grammar *g)
{
    char sides[64];
    int n = g->side, c = 1 + fuzz_below(g->draw, 4);
    add(g, "fields: {");
    switch (g->kind) {
    case IMAGES:
        snprintf(sides, sizeof(sides), "%d, %d", n, n + (fuzz_chance(g->draw, 64) ? fuzz_below(g->draw, 4) : 0));
        stk_text_add(g->out, "image: [%s, %d]", sides, c);
        break;
    case VOLUMES:
        snprintf(sides, sizeof(sides), "%d, %d, %d", 1 + n / 2, n, n);
        stk_text_add(g->out, "volume: [%s, %d]", sides, c);
        break;
    case TOKENS:
        snprintf(sides, sizeof(sides), "%d", n);
        stk_text_add(g->out, "tokens: {shape: [%d], below: %d}", n, g->vocabulary);
        if (fuzz_chance(g->draw, 128)) stk_text_add(g->out, ", targets: {shape: [%d], below: %d}", n, g->vocabulary);
        break;
    default:
        snprintf(sides, sizeof(sides), "%d", n);
        stk_text_add(g->out, fuzz_chance(g->draw, 32) ? "x: {shape: [%d, 3], dtype: f64}" : "x: [%d]", n * 2);
        break;
    }
    put_label(g, sides);
    if (fuzz_chance(g->draw, 24)) add(g, ", extra: [2]");
    add(g, "}");
    if (!g->is_dense) stk_text_add(g->out, ", classes: %d", g->n_classes);
}

static void put_source(grammar *g)
{
    add(g, "{synthetic: {");
    put_fields(g);
    stk_text_add(g->out, ", samples: %d", 4 + fuzz_below(g->draw, 40));
    add(g, "}}");
}

/* What a part says besides its source: order, and now and then stages. */
static void put_part(grammar *g, const char *name)
{
    static const char *const orders[] = {"shuffle",  "skip",   "take",    "shard",   "repeat", "remainder",
                                         "on_error", "filter", "unbatch", "windows", "pack",   "stages"};
    const stk_key *part = find(find(&stk_recipe_key, "data"), name);
    stk_text_add(g->out, "  %s:\n    source: ", name);
    put_source(g);
    add(g, "\n");
    if (g->wants_numbers && !g->is_dense) stk_text_add(g->out, "    stages: [{one_hot: %d}]\n", g->n_classes);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (!fuzz_chance(g->draw, i ? 8 : 128) || (g->wants_numbers && !strcmp(orders[i], "stages"))) continue;
        stk_text_add(g->out, "    %s: ", orders[i]);
        put(g, find(part, orders[i]));
        add(g, "\n");
    }
    if (!strcmp(name, "train") && fuzz_chance(g->draw, 16)) {
        const char *mix = fuzz_chance(g->draw, 128) ? "mixup" : "cutmix";
        stk_text_add(g->out, "    %s: {classes: %d}\n", mix, g->n_classes);
    }
}

/* --- models --- */

static void put_layers(grammar *g)
{
    static const char *const image_layers[] = {
        "conv2d",           "batch_norm", "relu",       "max_pool",   "avg_pool", "depthwise_conv2d",
        "conv2d_transpose", "upsample",   "group_norm", "layer_norm", "residual"};
    static const char *const volume_layers[] = {"conv3d",     "batch_norm",       "relu",     "max_pool3d",
                                                "avg_pool3d", "conv3d_transpose", "upsample", "group_norm"};
    static const char *const row_layers[] = {"dense", "relu", "batch_norm", "layer_norm", "dropout", "gelu", "silu"};
    const stk_key *kinds = find(find(&stk_recipe_key, "model"), "layers")->element;
    int n = 1 + fuzz_below(g->draw, 6);
    add(g, "model:\n  layers:\n");
    if (g->kind == TOKENS)
        stk_text_add(g->out, "    - {embedding: {rows: %d, width: %d}}\n", g->vocabulary,
                     2 + 2 * fuzz_below(g->draw, 5));
    for (int i = 0; i < n; i++) {
        const char *name = g->kind == IMAGES    ? image_layers[fuzz_below(g->draw, 11)]
                           : g->kind == VOLUMES ? volume_layers[fuzz_below(g->draw, 8)]
                                                : row_layers[fuzz_below(g->draw, 7)];
        const stk_key *key = fuzz_chance(g->draw, 64) ? choose(g, kinds) : find(kinds, name);
        if (key->type == STK_KEY_NONE) {
            stk_text_add(g->out, "    - %s\n", key->name);
            continue;
        }
        stk_text_add(g->out, "    - {%s: ", key->name);
        put(g, key);
        add(g, "}\n");
    }
    if (!g->is_dense) add(g, g->kind == IMAGES || g->kind == VOLUMES ? "    - global_pool\n" : "    - flatten\n");
    stk_text_add(g->out, "    - {dense: %d}\n", g->n_classes);
}

static void put_model(grammar *g)
{
    static const char *const of_images[] = {"cnn",         "mlp",          "resnet18", "unet",
                                            "autoencoder", "mobilenet_v2", "vit",      "vgg16"};
    int n = 2 + 2 * fuzz_below(g->draw, 4);
    char classes[32];
    snprintf(classes, sizeof(classes), ", classes: %d", g->n_classes);
    if (fuzz_chance(g->draw, 160)) {
        put_layers(g);
        return;
    }
    switch (g->kind) {
    case IMAGES: {
        const char *name = of_images[fuzz_below(g->draw, 8)];
        if (!strcmp(name, "vit"))
            stk_text_add(g->out, "model: {vit: {patch: %d, layers: 1, heads: 2, width: %d, hidden: 6%s}}\n",
                         1 + fuzz_below(g->draw, 4), n, classes);
        else if (!strcmp(name, "cnn") || !strcmp(name, "unet") || !strcmp(name, "autoencoder"))
            stk_text_add(g->out, "model: {%s: {widths: [%d, %d]%s}}\n", name, n, 1 + fuzz_below(g->draw, 20),
                         strcmp(name, "autoencoder") ? classes : "");
        else
            put_key(g, "model", name);
        break;
    }
    case VOLUMES: stk_text_add(g->out, "model: {cnn3d: {widths: [%d, 3]%s}}\n", n, classes); break;
    case TOKENS: {
        static const char *const names[] = {"gpt2", "bert", "lstm", "gru"};
        int i = fuzz_below(g->draw, 4);
        if (i < 2)
            stk_text_add(g->out, "model: {%s: {layers: 1, heads: 2, width: %d, vocabulary: %d, length: %d%s}}\n",
                         names[i], n, g->vocabulary, g->side, i ? ", classes: 3" : "");
        else
            put_key(g, "model", names[i]);
        break;
    }
    default:
        if (fuzz_chance(g->draw, 64))
            stk_text_add(g->out, "model: {wide_and_deep: {numbers: x, hidden: [%d], outputs: %d}}\n", n, g->n_classes);
        else
            stk_text_add(g->out, "model: {mlp: {hidden: [%d, %d]%s}}\n", n, 1 + fuzz_below(g->draw, 40), classes);
        break;
    }
}

void fuzz_make_recipe(fuzz_draw *draw, stk_text *out)
{
    static const char *const losses[] = {NULL, NULL, "cross_entropy", "mse", "bce", "mae", "huber", "dice", "triplet"};
    static const char *const often[] = {"optimizer", "schedule", "metrics", "precision", "clip_norm", "seed"};
    static const char *const rarely[] = {"pad",    "loss_scale", "ema",         "lookahead",     "whiten",
                                         "tta",    "on_nan",     "micro_batch", "accumulate",    "recompute",
                                         "freeze", "groups",     "no_decay",    "early_stopping"};
    grammar g = {.draw = draw, .out = out};
    g.kind = (sample_kind)fuzz_below(draw, N_KINDS);
    g.side = 3 + fuzz_below(draw, 8);
    g.n_classes = 2 + fuzz_below(draw, 6);
    g.vocabulary = 5 + fuzz_below(draw, 30);
    g.is_dense = fuzz_chance(draw, 32);
    int i_loss = fuzz_below(draw, 9);
    g.loss = losses[i_loss];
    g.wants_numbers = i_loss > 2 && i_loss < 7;
    add(&g, "data:\n");
    put_part(&g, "train");
    if (fuzz_chance(draw, 64)) put_part(&g, "valid");
    stk_text_add(out, "batch: %d\n", 1 + fuzz_below(draw, 8));
    put_model(&g);
    if (g.loss) put_key(&g, "loss", g.loss);
    for (size_t i = 0; i < sizeof(often) / sizeof(often[0]); i++)
        if (fuzz_chance(draw, 64)) put_key(&g, often[i], NULL);
    for (size_t i = 0; i < sizeof(rarely) / sizeof(rarely[0]); i++)
        if (fuzz_chance(draw, 10)) put_key(&g, rarely[i], NULL);
    add(&g, "epochs: 1\n");
}
