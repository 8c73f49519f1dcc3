/* Requests to object stores: signatures as published and as botocore makes them, keys from variables and files,
 * addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/remote/sign.h"
#include "data/remote/store.h"
#include "data/source/files.h"
#include "golden/sign_golden.h"
#include "stoker/printable.h"

static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID",    "AWS_SECRET_ACCESS_KEY",       "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_REGION",           "AWS_DEFAULT_REGION",          "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3",
    "AWS_CONFIG_FILE",      "AWS_SHARED_CREDENTIALS_FILE", "GS_ACCESS_KEY_ID",  "GS_SECRET_ACCESS_KEY",
    "STORAGE_EMULATOR_HOST"};

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    return stk_tree_remove(in_folder(".aws")) == STK_OK ? setenv("HOME", test_folder, 1) : -1;
}

static void is_text(const char *got, const char *wanted)
{
    if (!wanted)
        assert_null(got);
    else {
        assert_non_null(got);
        assert_string_equal(got, wanted);
    }
}

static void signatures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_sign) / sizeof(golden_sign[0]); i++) {
        stk_sign_header header[6];
        stk_text got = {0};
        for (int k = 0; k < golden_sign[i].n_headers; k++)
            header[k] = (stk_sign_header){golden_sign[i].header[k].name, golden_sign[i].header[k].value};
        stk_sign_request r = {.method = "GET",
                              .path = golden_sign[i].path,
                              .query = golden_sign[i].query,
                              .header = header,
                              .n_headers = golden_sign[i].n_headers,
                              .body_sum = golden_sign[i].body_sum,
                              .time = golden_sign[i].time,
                              .region = golden_sign[i].region,
                              .service = golden_sign[i].service,
                              .key_id = golden_sign[i].key_id,
                              .secret = golden_sign[i].secret};
        stk_status status = stk_request_sign(&r, &got);
        if (status == STK_UNSUPPORTED) { /* no libcrypto */
            print_message("SKIP: %s\n", stk_error_text());
            skip();
        }
        assert_int_equal(status, STK_OK);
        if (strcmp(stk_text_get(&got), golden_sign[i].authorization) != 0)
            fail_msg("%s: %s", golden_sign[i].name, stk_text_get(&got));
        stk_text_free(&got);
    }
}

/* The file's text in the folder's .aws. */
static void write_profiles(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), ".aws/%s", name);
    write_file(path, text, strlen(text));
}

static void check_keys(stk_store store, const char *id, const char *secret, const char *token, const char *region,
                       const char *endpoint)
{
    stk_keys keys;
    assert_int_equal(stk_keys_find(store, &keys), STK_OK);
    is_text(keys.id, id);
    is_text(keys.secret, secret);
    is_text(keys.token, token);
    is_text(keys.region, region);
    is_text(keys.endpoint, endpoint);
    stk_keys_free(&keys);
}

static void refused(const char *part)
{
    stk_keys keys;
    assert_int_not_equal(stk_keys_find(STK_STORE_S3, &keys), STK_OK);
    if (!strstr(stk_error_text(), part)) fail_msg("%s", stk_error_text());
    stk_keys_free(&keys);
}

static void keys_of_s3(void **state)
{
    (void)state;
    check_keys(STK_STORE_S3, NULL, NULL, NULL, NULL, NULL);
    write_profiles("credentials", "# mine\n[default]\r\naws_access_key_id = A\r\naws_secret_access_key=b=/+\r\n\n"
                                  "[other]\naws_access_key_id = C\naws_secret_access_key = d\naws_session_token = t");
    write_profiles("config", "[default]\nregion = eu-west-1\ns3 =\n  endpoint_url = http://nested\n"
                             "[profile other]\nregion=ap-south-1\nendpoint_url = https://host:9000/base//\n"
                             "[profile role]\nrole_arn = arn:x\n[profile own]\naws_access_key_id=E\n"
                             "aws_secret_access_key=f\n[profileother]\nregion=wrong\n");
    check_keys(STK_STORE_S3, "A", "b=/+", NULL, "eu-west-1", NULL);
    set("AWS_PROFILE", "other");
    check_keys(STK_STORE_S3, "C", "d", "t", "ap-south-1", "https://host:9000/base");
    set("AWS_PROFILE", "own");
    check_keys(STK_STORE_S3, "E", "f", NULL, NULL, NULL);
    set("AWS_PROFILE", "role");
    refused("export-credentials");
    set("AWS_PROFILE", "absent");
    refused("no profile 'absent'");
    /* Variables come first, and a token never joins keys from elsewhere. */
    set("AWS_PROFILE", "other");
    set("AWS_DEFAULT_REGION", "us-west-2");
    set("AWS_ENDPOINT_URL", "localhost:5555/");
    set("AWS_ACCESS_KEY_ID", "G");
    refused("but not AWS_SECRET_ACCESS_KEY");
    set("AWS_SECRET_ACCESS_KEY", "h");
    check_keys(STK_STORE_S3, "G", "h", NULL, "us-west-2", "http://localhost:5555");
    set("AWS_REGION", "sa-east-1");
    set("AWS_ENDPOINT_URL_S3", "http://s3");
    check_keys(STK_STORE_S3, "G", "h", NULL, "sa-east-1", "http://s3");
    set("AWS_ENDPOINT_URL_S3", "ftp://s3");
    refused("'ftp://s3' is not http");
}

static void keys_of_gs(void **state)
{
    (void)state;
    set("AWS_ACCESS_KEY_ID", "A"); /* none of its business */
    set("AWS_SECRET_ACCESS_KEY", "b");
    set("AWS_ENDPOINT_URL", "http://s3");
    check_keys(STK_STORE_GS, NULL, NULL, NULL, "auto", NULL);
    set("GS_ACCESS_KEY_ID", "GOOG1");
    set("GS_SECRET_ACCESS_KEY", "s");
    set("STORAGE_EMULATOR_HOST", "localhost:4443");
    check_keys(STK_STORE_GS, "GOOG1", "s", NULL, "auto", "http://localhost:4443");
}

/* The address is asked for at this one, with that many header lines. */
static void goes_to(const char *path, const char *query, const char *url, int n_lines)
{
    stk_store_call call;
    stk_store_ask ask = {path, query, "bytes=0-9", "\"x\""};
    int n = 0;
    stk_status status = stk_store_prepare(&ask, &call);
    if (status == STK_UNSUPPORTED) {
        print_message("SKIP: %s\n", stk_error_text());
        skip();
    }
    assert_int_equal(status, STK_OK);
    assert_string_equal(stk_text_get(&call.url), url);
    for (size_t i = 0; i < call.header.n; i++)
        n += call.header.data[i] == 0;
    assert_int_equal(n, n_lines);
    stk_store_call_free(&call);
}

static void addresses(void **state)
{
    (void)state;
    goes_to("http://host/a b?c", "", "http://host/a b?c", 2);
    goes_to("s3://bucket/a b+c/../d~.tar", "", "https://bucket.s3.us-east-1.amazonaws.com/a%20b%2Bc/../d~.tar", 2);
    goes_to("s3://bucket", "list-type=2", "https://bucket.s3.us-east-1.amazonaws.com/?list-type=2", 2);
    goes_to("s3://bucket/k", "list-type=2", "https://bucket.s3.us-east-1.amazonaws.com/?list-type=2", 2);
    goes_to("s3://a.b/k", "list-type=2", "https://s3.us-east-1.amazonaws.com/a.b?list-type=2", 2);
    goes_to("gs://a_b/k\xc3\xb6?", "", "https://storage.googleapis.com/a_b/k%C3%B6%3F", 2);
    set("AWS_REGION", "cn-north-1");
    goes_to("s3://bucket/k", "", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k", 2);
    /* What a store has told counts more, for that bucket. */
    assert_true(stk_store_learn_region("s3://bucket/x", "eu-west-3"));
    assert_false(stk_store_learn_region("s3://bucket/y", "eu-west-3"));
    assert_false(stk_store_learn_region("s3://bucket/y", "evil.host/"));
    goes_to("s3://bucket/k", "", "https://bucket.s3.eu-west-3.amazonaws.com/k", 2);
    set("AWS_ENDPOINT_URL", "http://localhost:80/base");
    set("AWS_ACCESS_KEY_ID", "A");
    set("AWS_SECRET_ACCESS_KEY", "b");
    goes_to("s3://bucket2/k", "", "http://localhost:80/base/bucket2/k", 5);
    set("AWS_SESSION_TOKEN", "t");
    goes_to("s3://bucket2/k", "list-type=2", "http://localhost:80/base/bucket2?list-type=2", 6);
}

static void bad_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"s3://",       "s3:///key",       "s3://bucket",      "s3://bucket/",
                                      "gs://.x/key", "s3://bu%63ket/k", "s3://user@host/k", "s3://host:80/k"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char shown[64];
        stk_store_call call;
        stk_store_ask ask = {bad[i], "", "", ""};
        if (stk_store_prepare(&ask, &call) != STK_INVALID) fail_msg("'%s' is taken", bad[i]);
        assert_non_null(strstr(stk_error_text(), stk_hide_secrets(bad[i], shown, sizeof(shown))));
        stk_store_call_free(&call);
    }
    set("AWS_REGION", "us-east-1.evil.host/");
    stk_store_call call;
    stk_store_ask ask = {"s3://bucket/k", "", "", ""};
    assert_int_equal(stk_store_prepare(&ask, &call), STK_INVALID);
    stk_store_call_free(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(signatures, clear),    cmocka_unit_test_setup(keys_of_s3, clear),
        cmocka_unit_test_setup(keys_of_gs, clear),    cmocka_unit_test_setup(addresses, clear),
        cmocka_unit_test_setup(bad_addresses, clear),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
