/* How others call the tensors that we have, both ways: one table of patterns, and nothing else to look at.
 *
 * Ours are torchvision's for ResNets and Hugging Face's for BERT and GPT-2, so that most of the table says how files
 * differ from those. Layouts are no matter of names: see weights/weights.h. Threads: any.
 */
#ifndef STK_WEIGHTS_NAME_MAP_H
#define STK_WEIGHTS_NAME_MAP_H

#include <stdbool.h>
#include <stddef.h>

/* In a pattern "#" is a whole number, "#-" that number less one, and "**" any text, dots included, one of it at most.
 * They stand in the same order on both sides; the first rule that fits counts. "{a,b,c}" in theirs: the three tensors
 * are ours cut into as many equal parts along the first axis. */
typedef struct stk_name_rule {
    const char *ours, *theirs;
} stk_name_rule;

enum { STK_NAME_MOST_PARTS = 4 }; /* in braces */

typedef struct stk_naming {
    const char *name; /* "torchvision": for --names and messages */
    const char *about;
    const stk_name_rule *rule; /* ended by NULL */
} stk_naming;

/* Naming number i; NULL past the end. */
const stk_naming *stk_naming_at(int i);
/* NULL: there is none of that name. */
const stk_naming *stk_naming_find(const char *name);

/* Their name for part number i_part of one of ours; nearly all have part 0 alone. False where no rule fits, there is no
 * such part, or out is too small. */
bool stk_name_theirs(const stk_naming *naming, const char *ours, int i_part, char *out, size_t out_bytes);
/* Our name for one of theirs. */
bool stk_name_ours(const stk_naming *naming, const char *theirs, char *out, size_t out_bytes);
/* True for what files hold besides parameters and running statistics: counters, masks, positions, and second names of
 * tied weights. */
bool stk_name_is_extra(const char *theirs);

#endif
