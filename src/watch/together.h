/* Several recordings of one job, one for each rank or machine, judged together: who holds the others back. A rank that
 * waits for another sleeps at a socket or a lock, which alone looks like slow input; beside the others' recordings it
 * does not. Each recording is judged as ever first (report.h). Threads: any. */
#ifndef STK_WATCH_TOGETHER_H
#define STK_WATCH_TOGETHER_H

#include "watch/report.h"

enum { STK_WATCH_MOST_MEMBERS = 1024, STK_WATCH_MEMBER_NAME = 96, STK_WATCH_TOGETHER_EVIDENCE = 4 };

/* What is not known is NaN. */
typedef struct stk_watch_member {
    const stk_watch_report *report;   /* borrowed */
    char name[STK_WATCH_MEMBER_NAME]; /* "rank 3 on node7", or the file's name; of others' choice */
    double waits;                     /* share of the time in which the driving thread sleeps for somebody outside */
    double busy, power, clock; /* of the GPUs in use: utilisation; share of the limit, and of the clock, while busy */
    double began_s, ended_s;   /* since 1970 */
    int exit_code;             /* 0: as it should, or not known */
    bool is_odd;               /* the others wait for it */
} stk_watch_member;

typedef enum stk_watch_joint {
    STK_WATCH_JOINT_ENDED,     /* one failed, and the others ended or stopped after it */
    STK_WATCH_JOINT_HANG,      /* some hang, and others do not */
    STK_WATCH_JOINT_STRAGGLER, /* the others wait for some */
    STK_WATCH_JOINT_EXCHANGE,  /* all wait for each other */
    STK_WATCH_JOINT_SAME,      /* all have the same first verdict */
    STK_WATCH_JOINT_MIXED,     /* they differ, and none holds the others back */
    STK_WATCH_JOINTS,
} stk_watch_joint;

typedef struct stk_watch_together {
    stk_watch_member *member; /* [n], the caller's */
    int n, n_odd;
    stk_watch_joint joint;
    double cost; /* share of the others' time; NaN: no matter of time */
    char evidence[STK_WATCH_TOGETHER_EVIDENCE][STK_WATCH_SENTENCE];
    int n_evidence;
    bool are_apart; /* they were not made at the same time */
} stk_watch_together;

/* member [n] has its reports and is filled; path [n]: the recordings' names. */
void stk_watch_together_judge(stk_watch_member *member, const char *const *path, int n, stk_watch_together *out);

/* "rank-ended", ..., and in words. */
const char *stk_watch_joint_name(stk_watch_joint joint);
const char *stk_watch_joint_title(stk_watch_joint joint);
/* "rank 3 on node7, rank 5 on node8 and 2 more", as they may be shown. */
void stk_watch_together_odd(const stk_watch_together *together, stk_text *out);
/* The first verdict of a member, or "none". */
const char *stk_watch_member_verdict(const stk_watch_member *member);

/* width: of lines, in characters. */
void stk_watch_together_text(const stk_watch_together *together, int width, stk_text *out);
/* One object: joint, title, odd, cost, evidence, at_one_time, members, each with its whole report. */
void stk_watch_together_json(const stk_watch_together *together, stk_text *out);
/* One page that needs no network: the joint verdict, a table, curves of all, and each one's verdicts. */
void stk_watch_together_html(const stk_watch_together *together, stk_text *out);

#endif
