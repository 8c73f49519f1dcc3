/* How often first verdicts are right, by the kind of their rule and their strength (judge.c). The table is fitted to
 * generated jobs by tests/watch/generated/fit.py, and nowhere else. */
#include "watch/trust.h"

#include <math.h>

enum { POINTS = 6 };
static const double points[STK_WATCH_TRUST_KINDS][POINTS][2] =
    /* --- made by ./dev doctor-generate --fit --- */
    /* Of 180 first verdicts, 180 of them right; expected calibration error 0.045 (10-fold). */
    {
        [STK_WATCH_OF_ACCOUNT] =
            {{0.0, 0.6}, {0.124, 0.97}, {0.124, 0.97}, {0.124, 0.97}, {0.124, 0.97}, {0.124, 0.97}},
        [STK_WATCH_OF_OTHER] = {{0.4, 0.6}, {0.699, 0.97}, {0.699, 0.97}, {0.699, 0.97}, {0.699, 0.97}, {0.699, 0.97}},
        [STK_WATCH_OF_HEALTHY] =
            {{0.4, 0.6}, {0.665, 0.97}, {0.665, 0.97}, {0.665, 0.97}, {0.665, 0.97}, {0.665, 0.97}},
};
/* --- until here --- */

double stk_watch_trust(stk_watch_trust_kind kind, double strength)
{
    const double(*p)[2] = points[kind];
    int i = 0;
    while (i < POINTS && strength > p[i][0])
        i++;
    if (i == 0) return p[0][1];
    if (i == POINTS) return p[POINTS - 1][1];
    double width = p[i][0] - p[i - 1][0], t = width > 0 ? (strength - p[i - 1][0]) / width : 1;
    return p[i - 1][1] + fmax(0, fmin(1, t)) * (p[i][1] - p[i - 1][1]);
}
