/* `expect` of a recipe: what a run must reach. Threads: any. */
#ifndef STK_RECIPE_EXPECT_H
#define STK_RECIPE_EXPECT_H

#include "settings/yaml.h"
#include "stoker/train/run.h"

/* Reads "test_iou >= 0.9" of a sequence of such texts, which may be NULL; the texts stay the tree's. */
stk_status stk_expect_read(const stk_yaml_node *list, stk_expected *out, int *n);
/* STK_INVALID where the prepared trainer does not measure one of them; before the run, since its end would be late. */
stk_status stk_expect_check(const stk_expected *expected, int n, const stk_trainer *trainer);
/* Fill in value and is_met; NaN meets nothing. */
void stk_expect_set(stk_expected *expected, double value);
void stk_expect_judge(stk_expected *expected, int n, const stk_metrics *test);

#endif
