/* Status codes and the text of the last error.
 *
 * Every function that can fail returns a stk_status. The details are a text of the calling thread, lower-case, with
 * the subject in single quotes: "cannot open 'train.yaml': no such file". It stays until that thread's next failure.
 */
#ifndef STOKER_STATUS_H
#define STOKER_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(STK_BUILD)
#define STK_API __attribute__((visibility("default")))
#else
#define STK_API
#endif

/* One list makes the enum, the names and the texts. */
#define STK_STATUS_LIST(X)                                                                                             \
    X(OK, "no error")                                                                                                  \
    X(INVALID, "invalid argument")                                                                                     \
    X(NOT_FOUND, "not found")                                                                                          \
    X(IO, "input or output error")                                                                                     \
    X(CORRUPT, "corrupt data")                                                                                         \
    X(NO_MEMORY, "out of memory")                                                                                      \
    X(UNSUPPORTED, "not supported")                                                                                    \
    X(NO_DEVICE, "device not available")                                                                               \
    X(DEVICE, "device error")                                                                                          \
    X(BUSY, "in use")                                                                                                  \
    X(MISMATCH, "does not match")                                                                                      \
    X(INTERRUPTED, "interrupted")                                                                                      \
    X(NO_ROW, "no such row of a table")                                                                                \
    X(LOST, "another replica failed")                                                                                  \
    X(INTERNAL, "internal error")

typedef enum stk_status {
#define X(name, text) STK_##name,
    STK_STATUS_LIST(X)
#undef X
} stk_status;

/* "invalid argument" and so on. Returns a constant. */
STK_API const char *stk_status_text(stk_status status);

/* The details of this thread's last failure, "" before the first. Borrowed until this thread's next failing call. */
STK_API const char *stk_error_text(void);

/* For functions of one's own that the library calls: sets this thread's details and returns status, as in
 * return stk_fail(STK_CORRUPT, "record %d has no label", i); */
STK_API stk_status stk_fail(stk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "0.1.0". Returns a constant. */
STK_API const char *stk_version(void);

#ifdef __cplusplus
}
#endif
#endif
