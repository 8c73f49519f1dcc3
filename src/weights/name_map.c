/* See weights/name_map.h. */
#include "weights/name_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */

/* ResNets, VGG and MobileNets of torchvision; BERT and GPT-2 of Hugging Face, with their heads. */
static const stk_name_rule same[] = {
    {"**", "**"},
    {NULL, NULL}};

/* BertModel and GPT2Model, saved without a head. */
static const stk_name_rule headless[] = {
    {"bert.embeddings.**",  "embeddings.**"},
    {"bert.encoder.**",     "encoder.**"},
    {"bert.pooler.**",      "pooler.**"},
    {"transformer.wte.**",  "wte.**"},
    {"transformer.wpe.**",  "wpe.**"},
    {"transformer.h.**",    "h.**"},
    {"transformer.ln_f.**", "ln_f.**"},
    {NULL, NULL}};

/* BERT as it came from TensorFlow. */
static const stk_name_rule from_tensorflow[] = {
    {"**.LayerNorm.weight", "**.LayerNorm.gamma"},
    {"**.LayerNorm.bias",   "**.LayerNorm.beta"},
    {"**",                  "**"},
    {NULL, NULL}};

/* ResNetForImageClassification of Hugging Face. */
static const stk_name_rule huggingface_resnet[] = {
    {"conv1.weight",                 "resnet.embedder.embedder.convolution.weight"},
    {"bn1.**",                       "resnet.embedder.embedder.normalization.**"},
    {"layer#.#.conv#.weight",        "resnet.encoder.stages.#-.layers.#.layer.#-.convolution.weight"},
    {"layer#.#.bn#.**",              "resnet.encoder.stages.#-.layers.#.layer.#-.normalization.**"},
    {"layer#.#.downsample.0.weight", "resnet.encoder.stages.#-.layers.#.shortcut.convolution.weight"},
    {"layer#.#.downsample.1.**",     "resnet.encoder.stages.#-.layers.#.shortcut.normalization.**"},
    {"fc.**",                        "classifier.1.**"},
    {NULL, NULL}};

/* ViTForImageClassification of Hugging Face. */
#define OURS   "encoder.layers.encoder_layer_#."
#define THEIRS "vit.encoder.layer.#."
static const stk_name_rule huggingface_vit[] = {
    {"class_token",                    "vit.embeddings.cls_token"},
    {"encoder.pos_embedding",          "vit.embeddings.position_embeddings"},
    {"conv_proj.**",                   "vit.embeddings.patch_embeddings.projection.**"},
    {OURS "ln_1.**",                   THEIRS "layernorm_before.**"},
    {OURS "self_attention.in_proj_**", THEIRS "attention.attention.{query,key,value}.**"},
    {OURS "self_attention.out_proj.**",THEIRS "attention.output.dense.**"},
    {OURS "ln_2.**",                   THEIRS "layernorm_after.**"},
    {OURS "mlp.0.**",                  THEIRS "intermediate.dense.**"},
    {OURS "mlp.3.**",                  THEIRS "output.dense.**"},
    {"encoder.ln.**",                  "vit.layernorm.**"},
    {"heads.head.**",                  "classifier.**"},
    {NULL, NULL}};

/* ViTs in the files that torchvision has published, which it renames as it reads them. */
static const stk_name_rule published_vit[] = {
    {OURS "mlp.0.**", OURS "mlp.linear_1.**"},
    {OURS "mlp.3.**", OURS "mlp.linear_2.**"},
    {"**",            "**"},
    {NULL, NULL}};
#undef OURS
#undef THEIRS

static const stk_naming namings[] = {
    {"pytorch",       "torchvision's and Hugging Face's, as Stoker's own",    same},
    {"headless",      "Hugging Face's of a model without its head",           headless},
    {"tensorflow",    "Hugging Face's of a BERT that came from TensorFlow",   from_tensorflow},
    {"hf-resnet",     "Hugging Face's of ResNets",                            huggingface_resnet},
    {"hf-vit",        "Hugging Face's of ViTs",                               huggingface_vit},
    {"published-vit", "torchvision's of ViTs in its published files",         published_vit}};

/* Ends of names. */
static const char *const extras[] = {
    ".num_batches_tracked",     /* of a batch norm: how many steps it has seen */
    ".position_ids",            /* 0, 1, 2, ...: BERT of old files */
    ".attn.bias",               /* the mask of causal attention: GPT-2 of old files */
    ".attn.masked_bias",
    "lm_head.weight",           /* GPT-2's head, which is transformer.wte.weight */
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    NULL};
/* clang-format on */

const stk_naming *stk_naming_at(int i)
{
    return i >= 0 && i < (int)(sizeof(namings) / sizeof(namings[0])) ? &namings[i] : NULL;
}

const stk_naming *stk_naming_find(const char *name)
{
    for (int i = 0; stk_naming_at(i); i++)
        if (!strcmp(stk_naming_at(i)->name, name)) return stk_naming_at(i);
    return NULL;
}

/* --- patterns --- */

enum { MOST_PARTS = 8, RULE_BYTES = 160 };

typedef struct part {
    const char *text;
    int n;
} part;

/* The text that each wildcard of pattern stands for; -1: no match. */
static int match(const char *pattern, const char *text, part *out)
{
    int n = 0;
    for (; *pattern; n++) {
        if (n == MOST_PARTS) return -1;
        size_t literal = strcspn(pattern, "#*");
        if (strncmp(pattern, text, literal)) return -1;
        pattern += literal;
        text += literal;
        if (!*pattern) break;
        size_t length = 0;
        bool is_number = *pattern == '#';
        if (is_number) {
            length = strspn(text, "0123456789");
            pattern += pattern[1] == '-' ? 2 : 1;
        } else {
            pattern += 2;
            /* What follows "**" holds no further wildcard: it ends the text. */
            size_t rest = strlen(pattern), all = strlen(text);
            length = all > rest ? all - rest : 0;
        }
        if (length == 0 || length > 4000) return -1;
        out[n] = (part){text, (int)length};
        text += length;
    }
    return *text ? -1 : n;
}

/* pattern with its wildcards replaced. shift[i]: what is added to number i. */
static bool fill(const char *pattern, const part *parts, const int *shift, char *out, size_t out_bytes)
{
    size_t n = 0;
    for (int k = 0; *pattern;) {
        char number[24];
        part p = {pattern, 1};
        if (*pattern == '#') {
            long value = strtol(parts[k].text, NULL, 10) + shift[k];
            if (parts[k].n > 9 || value < 0) return false;
            p.n = 0;
            do {
                number[sizeof(number) - 1 - (size_t)p.n++] = (char)('0' + value % 10);
            } while (value /= 10);
            p.text = number + sizeof(number) - p.n;
            pattern += pattern[1] == '-' ? 2 : 1;
            k++;
        } else if (*pattern == '*') {
            p = parts[k++];
            pattern += 2;
        } else {
            pattern++;
        }
        if (n + (size_t)p.n + 1 > out_bytes) return false;
        memcpy(out + n, p.text, (size_t)p.n);
        n += (size_t)p.n;
    }
    out[n] = 0;
    return true;
}

/* +1 for each "#-" of a pattern, 0 for other wildcards. */
static void offsets(const char *pattern, int sign, int *shift)
{
    int k = 0;
    for (; *pattern && k < MOST_PARTS; pattern++) {
        if (*pattern == '#') shift[k++] += pattern[1] == '-' ? sign : 0;
        if (*pattern == '*' && pattern[1] == '*') k++;
    }
}

/* False: from does not fit; otherwise *ok tells whether out has the name. */
static bool translate(const char *from, const char *to, const char *name, char *out, size_t out_bytes, bool *ok)
{
    part parts[MOST_PARTS];
    int shift[MOST_PARTS] = {0};
    if (match(from, name, parts) < 0) return false;
    offsets(from, 1, shift);
    offsets(to, -1, shift);
    *ok = fill(to, parts, shift, out, out_bytes);
    return true;
}

/* Pattern with choice number i of its "{a,b,c}" in their place; without one, i is 0. */
static bool choose(const char *pattern, int i, char *out, size_t out_bytes)
{
    const char *open = strchr(pattern, '{');
    const char *at = open ? open + 1 : NULL, *close = open ? strchr(open, '}') : NULL;
    if (!open) return i == 0 && (size_t)snprintf(out, out_bytes, "%s", pattern) < out_bytes;
    for (; i > 0 && at < close; i--)
        at += strcspn(at, ",}") + 1;
    if (at >= close) return false;
    int n =
        snprintf(out, out_bytes, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)strcspn(at, ",}"), at, close + 1);
    return (size_t)n < out_bytes;
}

bool stk_name_theirs(const stk_naming *naming, const char *ours, int i_part, char *out, size_t out_bytes)
{
    char theirs[RULE_BYTES];
    bool ok = false;
    for (const stk_name_rule *r = naming->rule; r->ours; r++)
        if (choose(r->theirs, i_part, theirs, sizeof(theirs)) && translate(r->ours, theirs, ours, out, out_bytes, &ok))
            return ok;
    return false;
}

bool stk_name_ours(const stk_naming *naming, const char *theirs, char *out, size_t out_bytes)
{
    char rule[RULE_BYTES];
    bool ok = false;
    for (const stk_name_rule *r = naming->rule; r->ours; r++)
        for (int i = 0; choose(r->theirs, i, rule, sizeof(rule)); i++)
            if (translate(rule, r->ours, theirs, out, out_bytes, &ok)) return ok;
    return false;
}

bool stk_name_is_extra(const char *theirs)
{
    size_t n = strlen(theirs);
    for (int i = 0; extras[i]; i++) {
        size_t n_end = strlen(extras[i]);
        if (n >= n_end && !strcmp(theirs + n - n_end, extras[i])) return true;
    }
    return false;
}
