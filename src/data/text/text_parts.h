/* One text as what a language model is trained on and what it is tested with. Threads: any. */
#ifndef STK_DATA_TEXT_TEXT_PARTS_H
#define STK_DATA_TEXT_TEXT_PARTS_H

#include "base/file.h"

/* Writes the first nine tenths of the file's bytes to FOLDER/train.txt and the rest to valid.txt, and both as the
 * numbers of their bytes to train.bin and valid.bin (stoker/data/tokenize.h). folder must be ours alone. */
stk_status stk_text_parts_write(const char *path, const char *folder);

#endif
