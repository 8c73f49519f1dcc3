/* See text/text_parts.h. */
#include "data/text/text_parts.h"

#include <stdlib.h>

#include "base/error.h"
#include "stoker/data/tokenize.h"

enum { PATH_BYTES = 4096 };

static stk_status write_part(const char *folder, const char *text_name, const char *token_name, stk_span text,
                             const stk_tokenizer *tokenizer)
{
    char in[PATH_BYTES], out[PATH_BYTES];
    const char *files[] = {in};
    stk_tokenize_options options = {.separator = "", .n_threads = 1, .tokenizer = "bytes"};
    STK_RETURN_IF_ERROR(stk_path_join(in, sizeof(in), folder, text_name));
    STK_RETURN_IF_ERROR(stk_path_join(out, sizeof(out), folder, token_name));
    STK_RETURN_IF_ERROR(stk_file_write_durably(in, text.data, text.n));
    return stk_tokenize_files(files, 1, tokenizer, out, &options, NULL);
}

stk_status stk_text_parts_write(const char *path, const char *folder)
{
    stk_status status;
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    stk_tokenizer *tokenizer = NULL;
    STK_TRY(stk_file_read(path, &bytes, &capacity, &n));
    size_t cut = n / 10 * 9 + n % 10 * 9 / 10;
    STK_TRY(stk_tokenizer_open("bytes", NULL, &tokenizer));
    STK_TRY(write_part(folder, "train.txt", "train.bin", (stk_span){bytes, cut}, tokenizer));
    STK_TRY(write_part(folder, "valid.txt", "valid.bin", (stk_span){bytes + cut, n - cut}, tokenizer));
done:
    stk_tokenizer_free(tokenizer);
    free(bytes);
    return status;
}
