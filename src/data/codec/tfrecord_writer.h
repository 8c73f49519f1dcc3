/* Writing TFRecord files, as TensorFlow's TFRecordWriter does. Threads: one at a time for each writer. */
#ifndef STK_DATA_CODEC_TFRECORD_WRITER_H
#define STK_DATA_CODEC_TFRECORD_WRITER_H

#include "data/codec/tfrecord.h"

typedef struct stk_tfrecord_writer stk_tfrecord_writer;

/* Replaces a file of that name when it is finished (base/new_file.h). Free *out with stk_tfrecord_writer_free. */
stk_status stk_tfrecord_writer_open(const char *path, stk_tfrecord_packing packing, stk_tfrecord_writer **out);
stk_status stk_tfrecord_writer_add(stk_tfrecord_writer *writer, stk_span data);
/* Writes what is still held back and gives the file its name; without this call there is none. */
stk_status stk_tfrecord_writer_finish(stk_tfrecord_writer *writer);
void stk_tfrecord_writer_free(stk_tfrecord_writer *writer); /* accepts NULL */

#endif
