/* Code of others that this process loads while it runs, as plug-ins of a device are: in whose it was, when the process
 * crashes. Nothing here catches a crash: a program may, and ask (cli/crash.c).
 *
 * Threads: any. stk_foreign_at may be called by a signal's handler.
 */
#ifndef STK_BASE_FOREIGN_H
#define STK_BASE_FOREIGN_H

/* Something is about to be loaded. what: its name for people, of which 600 characters are kept ("the PJRT plug-in
 * '/x.so'"). Returned: its number; the same name has the same one. -1: there are too many, and it stays unknown. */
int stk_foreign_add(const char *what);
/* It is loaded, and an address in it is known; what: its name from here on. */
void stk_foreign_found(int number, const char *what, const void *address);
/* This thread calls it. doing: a text that stays ("compiling a program"). No calls inside of calls. */
void stk_foreign_enter(int number, const char *doing);
void stk_foreign_leave(void);
/* Whose code the address pc is in, or who was called by this thread, NULL: nobody known. *doing: what the thread called
 * it for, NULL where it did not. Both texts stay. */
const char *stk_foreign_at(const void *pc, const char **doing);

#endif
