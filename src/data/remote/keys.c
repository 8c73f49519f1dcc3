/* See remote/keys.h. */
#include "data/remote/keys.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A wiped secret does not turn up in a core file. */
static void wipe(char *text)
{
    if (text) explicit_bzero(text, strlen(text));
    free(text);
}

void stk_keys_free(stk_keys *keys)
{
    wipe(keys->id);
    wipe(keys->secret);
    wipe(keys->token);
    free(keys->region);
    free(keys->endpoint);
    *keys = (stk_keys){0};
}

/* --- files of profiles: keys_parse.c --- */

/* A file that is not there is none. */
static stk_status read_profiles(const char *variable, const char *name, const char *profile, bool is_config,
                                stk_keys *out, bool *found)
{
    char path[PATH_MAX];
    const char *given = getenv(variable), *home = getenv("HOME");
    uint8_t *text = NULL;
    size_t capacity = 0, n;
    *found = false;
    if (given && given[0])
        snprintf(path, sizeof(path), "%s", given);
    else if (!home || snprintf(path, sizeof(path), "%s/.aws/%s", home, name) >= (int)sizeof(path))
        return STK_OK;
    if (!stk_path_exists(path)) return STK_OK;
    stk_status status = stk_file_read(path, &text, &capacity, &n);
    if (status == STK_OK) {
        status = stk_keys_parse((stk_span){text, n}, profile, is_config, out, found);
        explicit_bzero(text, n);
        if (status != STK_OK) stk_fail_prefix(status, "'%s': ", path);
    }
    free(text);
    return status;
}

/* --- finding --- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static stk_status copy(char **out, const char *text)
{
    if (*out || !text) return STK_OK;
    *out = strdup(text);
    return *out ? STK_OK : stk_fail_memory(strlen(text));
}

static stk_status from_variables(const char *id, const char *secret, const char *token, stk_keys *out)
{
    if (!variable(id) && !variable(secret)) return STK_OK;
    if (!variable(id) || !variable(secret))
        return stk_fail(STK_INVALID, "%s is set, but not %s: set both, or none", variable(id) ? id : secret,
                        variable(id) ? secret : id);
    STK_RETURN_IF_ERROR(copy(&out->id, variable(id)));
    STK_RETURN_IF_ERROR(copy(&out->secret, variable(secret)));
    return token ? copy(&out->token, variable(token)) : STK_OK;
}

static stk_status find_s3(stk_keys *out)
{
    const char *named = variable("AWS_PROFILE"), *profile = named ? named : "default";
    bool in_credentials, in_config;
    STK_RETURN_IF_ERROR(from_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", out));
    STK_RETURN_IF_ERROR(copy(&out->region, variable("AWS_REGION")));
    STK_RETURN_IF_ERROR(copy(&out->region, variable("AWS_DEFAULT_REGION")));
    STK_RETURN_IF_ERROR(copy(&out->endpoint, variable("AWS_ENDPOINT_URL_S3")));
    STK_RETURN_IF_ERROR(copy(&out->endpoint, variable("AWS_ENDPOINT_URL")));
    STK_RETURN_IF_ERROR(
        read_profiles("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, false, out, &in_credentials));
    STK_RETURN_IF_ERROR(read_profiles("AWS_CONFIG_FILE", "config", profile, true, out, &in_config));
    if (out->id || !named) return STK_OK;
    if (!in_credentials && !in_config)
        return stk_fail(STK_NOT_FOUND, "there is no profile '%s' (AWS_PROFILE) in ~/.aws/credentials or ~/.aws/config",
                        profile);
    return stk_fail(STK_UNSUPPORTED,
                    "profile '%s' (AWS_PROFILE) has no keys of its own, and roles and single sign-on are not followed; "
                    "eval \"$(aws configure export-credentials --format env)\" sets keys made from it",
                    profile);
}

static stk_status find_gs(stk_keys *out)
{
    STK_RETURN_IF_ERROR(from_variables("GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", NULL, out));
    STK_RETURN_IF_ERROR(copy(&out->region, "auto"));
    return copy(&out->endpoint, variable("STORAGE_EMULATOR_HOST"));
}

/* "http://" in front where nothing is, and no slash at the end. */
static stk_status tidy_endpoint(stk_keys *keys)
{
    char *given = keys->endpoint;
    if (!given) return STK_OK;
    for (size_t n = strlen(given); n > 0 && given[n - 1] == '/'; n--)
        given[n - 1] = 0;
    if (!strncmp(given, "http://", 7) || !strncmp(given, "https://", 8)) return STK_OK;
    if (strstr(given, "://")) return stk_fail(STK_INVALID, "the endpoint '%s' is not http:// or https://", given);
    if (asprintf(&keys->endpoint, "http://%s", given) < 0) {
        keys->endpoint = given;
        return stk_fail_memory(strlen(given));
    }
    free(given);
    return STK_OK;
}

stk_status stk_keys_find(stk_store store, stk_keys *out)
{
    *out = (stk_keys){0};
    STK_RETURN_IF_ERROR(store == STK_STORE_S3 ? find_s3(out) : find_gs(out));
    return tidy_endpoint(out);
}
