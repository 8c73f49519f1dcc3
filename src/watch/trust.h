/* Confidence of a verdict: how often one of its kind and strength is right. Threads: any. */
#ifndef STK_WATCH_TRUST_H
#define STK_WATCH_TRUST_H

typedef enum stk_watch_trust_kind {
    STK_WATCH_OF_ACCOUNT, /* its cost is a part of the account */
    STK_WATCH_OF_OTHER,
    STK_WATCH_OF_HEALTHY, /* all is well */
    STK_WATCH_TRUST_KINDS
} stk_watch_trust_kind;

/* strength: 0 to 1. Returns a share. */
double stk_watch_trust(stk_watch_trust_kind kind, double strength);

#endif
