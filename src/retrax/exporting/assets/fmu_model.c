/* What both versions of FMI need: numbers by their references, steps, copies of all of it. */
typedef struct {
    ${name}_params p;
    ${name}_state s;
    ${name}_state before; /* where the last communication step began */
    double h;             /* of the steps that it took */
    long steps;           /* how many */
    double work[WORK];
} Model;

static double *number(Model *m, unsigned reference)
{
    if (reference < PARAMS) return (double *)&m->p + reference;
    if (reference < PARAMS + NUMBERS) return (double *)&m->s + (reference - PARAMS);
    return NULL;
}

static int advance(Model *m, double from, double length)
{
    /* As many steps of the size that was exported as fit; of another size if they do not fit. */
    const double ratio = length / STEP_SIZE;
    long steps = (long)(ratio + 0.5);
    double h = STEP_SIZE;
    if (steps < 1) steps = 1;
    if (fabs(ratio - (double)steps) > 1e-9 * ratio) h = length / (double)steps;
    if (fabs(m->s.t - from) > 1e-9 * (1.0 + fabs(from))) m->s.t = from;
    m->before = m->s;
    m->h = h;
    m->steps = steps;
    return ${name}_run(&m->p, &m->s, h, steps, NULL);
}

#if DERIVATIVES
/* The change of the numbers that are asked for, over the last communication step, by a change of
 * parameters, inputs, and the state that it began from. */
static int derivative(Model *m, const unsigned *unknowns, size_t nu, const unsigned *knowns,
    size_t nk, const double *seed, double *sensitivity)
{
    double dp[PARAMS + 1] = {0}, dx[NUMBERS] = {0}, out[NUMBERS];
    Model *at = malloc(sizeof *at);
    if (at == NULL) return 0;
    *at = *m;
    at->s = m->before;
    for (size_t k = 0; k < nk; ++k) {
        if (knowns[k] < PARAMS) dp[knowns[k]] += seed[k];
        else if (knowns[k] < PARAMS + NUMBERS) dx[knowns[k] - PARAMS] += seed[k];
        else { free(at); return 0; }
    }
    for (long n = 0; n < m->steps; ++n) {
        step_push((const double *)&at->p, (const double *)&at->s, &m->h, dp, dx, out, at->work);
        memcpy(dx, out, sizeof dx);
        if (${name}_step(&at->p, &at->s, m->h, NULL) != ${upper}_OK) { free(at); return 0; }
    }
    free(at);
    for (size_t k = 0; k < nu; ++k) {
        if (unknowns[k] < PARAMS || unknowns[k] >= PARAMS + NUMBERS) return 0;
        sensitivity[k] = dx[unknowns[k] - PARAMS];
    }
    return 1;
}
#endif
