/* The types of scalars for settings/schema.c: texts become numbers, sizes, shares and intervals. */
#ifndef STK_SETTINGS_SCHEMA_SCALAR_H
#define STK_SETTINGS_SCHEMA_SCALAR_H

#include "settings/schema.h"

/* Sets integer, real and truth, and node->text to the one spelling. */
stk_status stk_schema_check_scalar(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key);

/* "0.1", "1e-3", "1/255" -> value; false for anything else, and for what is not finite. */
bool stk_parse_real(const char *text, double *out);
/* Decimal digits with an optional sign and '_' between them, as 60_000. */
bool stk_parse_int(const char *text, int64_t *out);
/* "8GiB", "512 MiB", "2GB", "1000" -> bytes. */
bool stk_parse_bytes(const char *text, int64_t *out);

#endif
