/* Sizes that the two files of metrics share. */
#ifndef STK_TRAIN_MEASURE_INSIDE_H
#define STK_TRAIN_MEASURE_INSIDE_H

enum { STK_AUC_BINS = 8192, STK_MOST_AUC = 64, STK_MOST_NEIGHBOURS = 99999 };

#endif
