/* Letters of 5 x 7 pixels, for labels on contact sheets. ASCII; anything else is a question mark. Threads: any. */
#ifndef STK_DATA_INSPECT_FONT_H
#define STK_DATA_INSPECT_FONT_H

#include <stddef.h>
#include <stdint.h>

/* Of a letter with the space after it. */
enum { STK_FONT_WIDTH = 6, STK_FONT_HEIGHT = 8 };

/* Bit y of column x is set where the letter is; x 0 to 4. */
uint8_t stk_font_column(unsigned char letter, int x);
/* How many letters a UTF-8 text has: its characters. */
size_t stk_font_count(const char *text);

#endif
