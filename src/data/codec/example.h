/* tf.train.Example in protobuf's wire format (protobuf.dev/programming-guides/encoding), read by hand:
 *
 *     Example  { Features features = 1; }           Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
 *     Features { map<string, Feature> feature = 1; }          each list: repeated value = 1
 *
 * Lists may be packed or not, fields come in any order, unknown ones are skipped. Bytes in, arrays out; every length is
 * checked against what is left; fuzzed. Threads: any.
 */
#ifndef STK_DATA_CODEC_EXAMPLE_H
#define STK_DATA_CODEC_EXAMPLE_H

#include "base/file.h"
#include "base/text.h"
#include "tensor/shape.h"

/* Finds the features of n keys in one pass: value[i] is the encoded Feature of key[i], with data NULL where the Example
 * has none; of a key that is there twice the last counts. Spans lie in example. */
stk_status stk_example_find(stk_span example, const stk_span *key, int n, stk_span *value);

/* True for a Feature that says nothing: TensorFlow takes it for a missing one. */
bool stk_feature_is_empty(stk_span feature);
/* The one byte string of a BytesList. */
stk_status stk_feature_bytes(stk_span feature, stk_span *out);
/* Exactly the elements of desc into dst. An Int64List fills integers and bool, each value within the range; a FloatList
 * f32 and f64; a BytesList of one string any type, as raw little-endian elements. Texts do not name the key. */
stk_status stk_feature_array(stk_span feature, stk_tensor_desc desc, void *dst);
/* The same without a copy, where the elements lie in the feature as they are and dst would get exactly them; NULL
 * elsewhere. Aligned to nothing. */
const void *stk_feature_in_place(stk_span feature, stk_tensor_desc desc);

/* Writing: features are added one after the other, then wrapped. */
void stk_example_add_bytes(stk_text *features, const char *key, const void *bytes, size_t n);
void stk_example_add_floats(stk_text *features, const char *key, const float *values, size_t n);
void stk_example_add_ints(stk_text *features, const char *key, const int64_t *values, size_t n);
void stk_example_finish(const stk_text *features, stk_text *out);

#endif
