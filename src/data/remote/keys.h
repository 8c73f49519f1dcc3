/* Keys, region and endpoint of object stores, found where the stores' own tools find them.
 *
 *   s3://   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the profile AWS_PROFILE ("default") in
 *           AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), then in AWS_CONFIG_FILE (~/.aws/config).
 *           Region: AWS_REGION, AWS_DEFAULT_REGION, the profile's. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the
 *           profile's endpoint_url.
 *   gs://   HMAC keys: GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY. Endpoint: STORAGE_EMULATOR_HOST.
 *
 * Without keys requests are anonymous, which public objects allow. All is looked up for each request again, so that
 * keys may be replaced while a run goes on. Keys are never part of a message. Threads: any.
 */
#ifndef STK_DATA_REMOTE_KEYS_H
#define STK_DATA_REMOTE_KEYS_H

#include "base/file.h"

typedef enum stk_store { STK_STORE_NONE, STK_STORE_S3, STK_STORE_GS } stk_store;

/* Owned texts; NULL where there is none. */
typedef struct stk_keys {
    char *id, *secret, *token;
    char *region;
    char *endpoint; /* "http://host:port", perhaps with a path; no slash at its end */
} stk_keys;

/* *out is released by stk_keys_free, after an error too. */
stk_status stk_keys_find(stk_store store, stk_keys *out);
void stk_keys_free(stk_keys *keys);
/* One profile of a file in the form of ~/.aws/credentials, or ~/.aws/config (is_config), where a section's name begins
 * with "profile ". What *out has already stays. *found: the file has the profile. Fuzzed. */
stk_status stk_keys_parse(stk_span text, const char *profile, bool is_config, stk_keys *out, bool *found);

#endif
