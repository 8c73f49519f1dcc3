/* See data/source/reader.h. */
#include "data/source/reader.h"

stk_status stk_reader_read(stk_reader *reader, const stk_source *source, int64_t i_record, const stk_stage_key *key,
                           stk_item *item)
{
    const stk_source_class *class = source->class;
    if (class->read_keyed) return class->read_keyed(source, i_record, key, &reader->work, item);
    return class->read(source, i_record, reader->scratch, item);
}

stk_status stk_reader_read_some(stk_reader *reader, const stk_source *source, int64_t i_record,
                                const stk_stage_key *key, unsigned fields, stk_item *item)
{
    if (!source->class->read_some) return stk_reader_read(reader, source, i_record, key, item);
    return source->class->read_some(source, i_record, fields, reader->scratch, item);
}

void stk_reader_free(stk_reader *reader, const stk_source *source)
{
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        stk_scratch_free(&reader->scratch[i]);
    if (reader->work) source->class->free_work(source, reader->work);
    *reader = (stk_reader){0};
}

size_t stk_source_held_bytes(const stk_source *source)
{
    return source->class->held_bytes ? source->class->held_bytes(source) : 0;
}

void stk_source_name(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes)
{
    const stk_source_class *class = source->class;
    if (class->name_keyed)
        class->name_keyed(source, i_record, epoch, out, out_bytes);
    else
        class->name_record(source, i_record, out, out_bytes);
}

bool stk_record_can_skip(stk_status status)
{
    return status != STK_IO && status != STK_NO_MEMORY && status != STK_INTERNAL && status != STK_INTERRUPTED;
}
