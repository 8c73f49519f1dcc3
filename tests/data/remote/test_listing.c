/* The list of objects that a bucket answers with: as S3, Google and MinIO write it, and as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/remote/listing.h"
#include "data/source/files.h"

static stk_text seen; /* "key|etag|size;" of each object */

static stk_status note(void *user, const stk_listed *object)
{
    (void)user;
    stk_text_add(&seen, "%s|%s|%llu;", object->key, object->etag, (unsigned long long)object->n_bytes);
    return STK_OK;
}

static stk_status parse(const char *xml, stk_text *next)
{
    stk_text_free(&seen);
    return stk_listing_parse((stk_span){(const uint8_t *)xml, strlen(xml)}, note, NULL, next);
}

static void gives(const char *xml, const char *objects, const char *token)
{
    stk_text next;
    if (parse(xml, &next) != STK_OK) fail_msg("%s: %s", stk_error_text(), xml);
    assert_string_equal(stk_text_get(&seen), objects);
    assert_string_equal(stk_text_get(&next), token);
    stk_text_free(&next);
    stk_text_free(&seen);
}

#define ROOT "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define END  "</ListBucketResult>"

static void lists(void **state)
{
    (void)state;
    gives("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" ROOT
          "<Name>b</Name><Prefix>a/</Prefix><KeyCount>2</KeyCount><IsTruncated>false</IsTruncated>"
          "<Contents><Key>a/1 &amp; &lt;2&gt;.jpg</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
          "<ETag>&quot;d41d8&quot;</ETag><Size>17</Size><Owner><ID>x</ID></Owner><StorageClass>STANDARD</StorageClass>"
          "</Contents>\n<Contents><Size>9223372036854775807</Size><Key>&#252;&#xFC;&#x1F600;</Key></Contents>"
          "<CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes>" END "\n",
          "a/1 & <2>.jpg|\"d41d8\"|17;\xc3\xbc\xc3\xbc\xf0\x9f\x98\x80||9223372036854775807;", "");
    gives(ROOT "<Contents><Key>k</Key><Size>0</Size></Contents><NextContinuationToken>1/+=&#10;</NextContinuationToken>"
               "<IsTruncated>true</IsTruncated>" END,
          "k||0;", "1/+=\n");
    /* A token counts only with the word that there is more. */
    gives(ROOT "<NextContinuationToken>1</NextContinuationToken><IsTruncated>false</IsTruncated>" END, "", "");
    gives("<ListBucketResult/>", "", "");
    gives("<ListBucketResult a='>' b=\"'\"><Prefix/></ListBucketResult>", "", "");
}

static void damage(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "no XML",
        "<Error><Code>AccessDenied</Code></Error>",
        ROOT,
        ROOT "<Contents>" END,
        ROOT "</Contents>" END,
        ROOT END "<more/>",
        ROOT "<Contents><Key>k</Key></Contents>" END,
        ROOT "<Contents><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key></Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k</Key><Size>-1</Size></Contents>" END,
        ROOT "<Contents><Key>k</Key><Size>1x</Size></Contents>" END,
        ROOT "<Contents><Key>k</Key><Size>9223372036854775808</Size></Contents>" END,
        ROOT "<Contents><Key>k&#0;</Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k&#xD800;</Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k&#-1;</Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k&nbsp;</Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k&</Key><Size>1</Size></Contents>" END,
        ROOT "<Contents><Key>k<b/></Key><Size>1</Size></Contents>" END,
        ROOT "<Key>k</Key><!-- comment -->" END,
        ROOT "<![CDATA[x]]>" END,
        "<!DOCTYPE x [<!ENTITY a \"b\">]>" ROOT END,
        ROOT "<IsTruncated>true</IsTruncated>" END,
        ROOT "<a><b><c><d><e><f><g><h></h></g></f></e></d></c></b></a>" END,
        ROOT "<Contents <Key>k</Key>" END,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        stk_text next;
        if (parse(bad[i], &next) != STK_CORRUPT) fail_msg("is taken: %s", bad[i]);
        stk_text_free(&next);
    }
    stk_text_free(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
