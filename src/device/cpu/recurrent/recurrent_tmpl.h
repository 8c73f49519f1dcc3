/* For recurrent_isa.c, once for each T: one row of gates. Elements are read before those of the same place are
 * written, so that rows that lie on each other do no harm.
 */

static void NAME(lstm)(const stk_recurrent_row *row)
{
    int64_t n = row->n, stride = row->stride;
    const T *x = row->x, *s = row->sums, *b = row->bias, *c_before = row->c_before;
    T *h = row->h, *c = row->c, *gates = row->gates;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        int64_t f = stride + u, g = 2 * stride + u, o = 3 * stride + u;
        T in = SIGMOID(x[u] + s[u] + b[u]), forget = SIGMOID(x[f] + s[f] + b[f]);
        T new = TANH(x[g] + s[g] + b[g]), show = SIGMOID(x[o] + s[o] + b[o]);
        T state = forget * c_before[u] + in * new;
        gates[u] = in;
        gates[f] = forget;
        gates[g] = new;
        gates[o] = show;
        c[u] = state;
        h[u] = show * TANH(state);
    }
}

static void NAME(gru)(const stk_recurrent_row *row)
{
    int64_t n = row->n, stride = row->stride;
    const T *x = row->x, *s = row->sums, *b = row->bias, *h_before = row->h_before;
    T *h = row->h, *part = row->part, *gates = row->gates;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        int64_t k = stride + u, g = 2 * stride + u;
        T reset = SIGMOID(x[u] + s[u] + b[u]), keep = SIGMOID(x[k] + s[k] + b[k]), p = s[g] + b[g];
        T new = TANH(x[g] + reset * p);
        gates[u] = reset;
        gates[k] = keep;
        gates[g] = new;
        part[u] = p;
        h[u] = new + keep *(h_before[u] - new);
    }
}

/* dh of the step itself and of the steps behind it. */
#define ALL_OF_DH(u) (dh[u] + pass[u] + (carry ? carry[u] : 0))

static void NAME(lstm_back)(const stk_recurrent_back *row)
{
    int64_t n = row->n, stride = row->stride;
    const T *dh = row->dh, *dc = row->dc, *carry = row->carry, *c = row->c, *c_before = row->c_before;
    const T *gates = row->gates;
    T *dx = row->dx, *pass = row->pass, *dc_carry = row->dc_carry;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        int64_t f = stride + u, g = 2 * stride + u, o = 3 * stride + u;
        T in = gates[u], forget = gates[f], new = gates[g], show = gates[o], shown = TANH(c[u]), all = ALL_OF_DH(u);
        T d = dc_carry[u] + (dc ? dc[u] : 0) + all * show * (1 - shown * shown);
        dx[u] = d * new *in *(1 - in);
        dx[f] = d * c_before[u] * forget * (1 - forget);
        dx[g] = d * in * (1 - new *new);
        dx[o] = all * shown * show * (1 - show);
        dc_carry[u] = d * forget;
        pass[u] = 0;
    }
}

static void NAME(gru_back)(const stk_recurrent_back *row)
{
    int64_t n = row->n, stride = row->stride;
    const T *dh = row->dh, *carry = row->carry, *h_before = row->h_before, *gates = row->gates, *part = row->part;
    T *dx = row->dx, *dstate = row->dstate, *pass = row->pass;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        int64_t k = stride + u, g = 2 * stride + u;
        T reset = gates[u], keep = gates[k], new = gates[g], all = ALL_OF_DH(u);
        T dnew = all * (1 - keep) * (1 - new *new), dreset = dnew * part[u] * reset * (1 - reset);
        T dkeep = all * (h_before[u] - new) * keep * (1 - keep);
        dx[u] = dreset;
        dx[k] = dkeep;
        dx[g] = dnew;
        dstate[u] = dreset;
        dstate[k] = dkeep;
        dstate[g] = dnew * reset;
        pass[u] = all * keep;
    }
}

static void NAME(hold_back)(const stk_recurrent_back *row, int n_gates)
{
    int64_t n = row->n;
    const T *dh = row->dh, *dc = row->dc, *carry = row->carry;
    T *pass = row->pass, *dc_carry = row->dc_carry;
    for (int64_t u = 0; u < n; u++)
        pass[u] = ALL_OF_DH(u);
    for (int64_t u = 0; u < n && dc; u++)
        dc_carry[u] += dc[u];
    for (int g = 0; g < n_gates; g++) {
        memset((T *)row->dx + g * row->stride, 0, (size_t)n * sizeof(T));
        if (row->dstate) memset((T *)row->dstate + g * row->stride, 0, (size_t)n * sizeof(T));
    }
}

#undef ALL_OF_DH
