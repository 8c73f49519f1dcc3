/* Lists of objects as stores answer with them, and profiles with keys. What is told must hold: keys are not empty.
 *
 * covers: data/remote/listing.c data/remote/keys_parse.c
 */
#include <stdlib.h>
#include <string.h>

#include "data/remote/keys.h"
#include "data/remote/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stk_status check(void *user, const stk_listed *object)
{
    (void)user;
    if (!object->key[0] || object->n_bytes > INT64_MAX || strlen(object->etag) > 1 << 24) abort();
    return STK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_text next;
    stk_keys keys = {0};
    bool found;
    (void)stk_listing_parse((stk_span){data, size}, check, NULL, &next);
    stk_text_free(&next);
    for (int is_config = 0; is_config < 2; is_config++)
        if (stk_keys_parse((stk_span){data, size}, "default", is_config, &keys, &found) == STK_OK &&
            !keys.id != !keys.secret)
            abort();
    stk_keys_free(&keys);
    return 0;
}
