/* Tensors that lie in parts on several ranks (passes/shard.h), for those who see whole ones: checkpoints.
 *
 * Between steps the first rank opens the others' parts; until it closes them, the others do nothing but give what it
 * reads, and so every rank calls both, at the same points of the loop.
 *
 *   rank 0   open   read "conv.weight.m"   read ...   close        its hooks read and save in between
 *   others   open   give                   give              close
 *
 * A state that is set comes whole to the first rank, and is dealt out at the start of the loop.
 */
#ifndef STK_TRAIN_DIVIDED_H
#define STK_TRAIN_DIVIDED_H

#include "engine/engine.h"
#include "train/trainer.h"

/* Whether there are such tensors. */
bool stk_divided_exist(const stk_trainer *trainer);
/* The trainer's tensor of a variable that is one: whole, with a source and without data. */
stk_named_tensor stk_divided_tensor(stk_trainer *trainer, const stk_variable_view *variable, int i_variable);
/* Bytes of all variables, each of them whole. */
size_t stk_divided_whole_bytes(const stk_trainer *trainer);

/* Collective; nothing where there are none. The second returns `status`, or its own failure. */
stk_status stk_divided_open(stk_trainer *trainer);
stk_status stk_divided_close(stk_trainer *trainer, stk_status status);
/* Collective: what the first rank was given whole goes to the ranks. */
stk_status stk_divided_deal(stk_trainer *trainer);
/* What was given and not dealt out. */
void stk_divided_forget(stk_trainer *trainer);

#endif
