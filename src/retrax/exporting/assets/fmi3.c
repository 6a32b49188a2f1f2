/* The functions of FMI 3.0 for co-simulation. */
typedef void *fmi3Instance;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef double fmi3Float64;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;

#define UNUSED(what) (void)(what)

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String w[])
{
    UNUSED(c); UNUSED(on); UNUSED(n); UNUSED(w);
    return fmi3OK;
}

EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String place,
    fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early,
    const fmi3ValueReference required[], size_t n, void *environment, void *log, void *update)
{
    Model *m;
    UNUSED(name); UNUSED(place); UNUSED(visible); UNUSED(logging); UNUSED(events); UNUSED(early);
    UNUSED(required); UNUSED(n); UNUSED(environment); UNUSED(log); UNUSED(update);
    if (token == NULL || strcmp(token, TOKEN) != 0) return NULL;
    m = calloc(1, sizeof *m);
    if (m != NULL) ${name}_defaults(&m->p, &m->s);
    return m;
}

EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String place,
    fmi3Boolean visible, fmi3Boolean logging, void *environment, void *log)
{
    UNUSED(name); UNUSED(token); UNUSED(place); UNUSED(visible); UNUSED(logging);
    UNUSED(environment); UNUSED(log);
    return NULL;
}

EXPORT fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token,
    fmi3String place, fmi3Boolean visible, fmi3Boolean logging, void *environment, void *log,
    void *clock, void *lock, void *unlock)
{
    UNUSED(name); UNUSED(token); UNUSED(place); UNUSED(visible); UNUSED(logging);
    UNUSED(environment); UNUSED(log); UNUSED(clock); UNUSED(lock); UNUSED(unlock);
    return NULL;
}

EXPORT void fmi3FreeInstance(fmi3Instance c) { free(c); }

EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean known,
    fmi3Float64 tolerance, fmi3Float64 start, fmi3Boolean stops, fmi3Float64 stop)
{
    UNUSED(known); UNUSED(tolerance); UNUSED(stops); UNUSED(stop);
    ((Model *)c)->s.t = start;
    return fmi3OK;
}
EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance c)
{
    ((Model *)c)->before = ((Model *)c)->s;
    return fmi3OK;
}
EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance c) { UNUSED(c); return fmi3Error; }
EXPORT fmi3Status fmi3EnterStepMode(fmi3Instance c) { UNUSED(c); return fmi3OK; }
EXPORT fmi3Status fmi3EnterConfigurationMode(fmi3Instance c) { UNUSED(c); return fmi3OK; }
EXPORT fmi3Status fmi3ExitConfigurationMode(fmi3Instance c) { UNUSED(c); return fmi3OK; }
EXPORT fmi3Status fmi3Terminate(fmi3Instance c) { UNUSED(c); return fmi3OK; }
EXPORT fmi3Status fmi3Reset(fmi3Instance c)
{
    memset(c, 0, sizeof(Model));
    ${name}_defaults(&((Model *)c)->p, &((Model *)c)->s);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    fmi3Float64 v[], size_t nv)
{
    if (nv < n) return fmi3Error;
    for (size_t k = 0; k < n; ++k) {
        const double *x = r[k] == TIME ? &((Model *)c)->s.t : number(c, r[k]);
        if (x == NULL) return fmi3Error;
        v[k] = *x;
    }
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    const fmi3Float64 v[], size_t nv)
{
    if (nv < n) return fmi3Error;
    for (size_t k = 0; k < n; ++k) {
        double *x = number(c, r[k]);
        if (x == NULL) return fmi3Error;
        if (*x != v[k] && !is_input(r[k])) ${name}_restart(&((Model *)c)->s);
        *x = v[k];
    }
    return fmi3OK;
}

#define NO_SUCH(kind, type) \
    EXPORT fmi3Status fmi3Get##kind(fmi3Instance c, const fmi3ValueReference r[], size_t n, \
        type v[], size_t nv) \
    { UNUSED(c); UNUSED(r); UNUSED(v); UNUSED(nv); return n == 0 ? fmi3OK : fmi3Error; } \
    EXPORT fmi3Status fmi3Set##kind(fmi3Instance c, const fmi3ValueReference r[], size_t n, \
        const type v[], size_t nv) \
    { UNUSED(c); UNUSED(r); UNUSED(v); UNUSED(nv); return n == 0 ? fmi3OK : fmi3Error; }
NO_SUCH(Float32, float)
NO_SUCH(Int8, int8_t)
NO_SUCH(UInt8, uint8_t)
NO_SUCH(Int16, int16_t)
NO_SUCH(UInt16, uint16_t)
NO_SUCH(Int32, int32_t)
NO_SUCH(UInt32, uint32_t)
NO_SUCH(Int64, int64_t)
NO_SUCH(UInt64, uint64_t)
NO_SUCH(Boolean, fmi3Boolean)
NO_SUCH(String, fmi3String)

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *kept)
{
    if (*kept == NULL) *kept = malloc(sizeof(Model));
    if (*kept == NULL) return fmi3Error;
    memcpy(*kept, c, sizeof(Model));
    return fmi3OK;
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState kept)
{
    memcpy(c, kept, sizeof(Model));
    return fmi3OK;
}
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *kept)
{
    UNUSED(c);
    free(*kept);
    *kept = NULL;
    return fmi3OK;
}
EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState kept, size_t *size)
{
    UNUSED(c); UNUSED(kept);
    *size = sizeof(Model);
    return fmi3OK;
}
EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState kept, fmi3Byte to[], size_t size)
{
    UNUSED(c);
    if (size < sizeof(Model)) return fmi3Error;
    memcpy(to, kept, sizeof(Model));
    return fmi3OK;
}
EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte from[], size_t size,
    fmi3FMUState *kept)
{
    UNUSED(c);
    if (size < sizeof(Model)) return fmi3Error;
    if (*kept == NULL) *kept = malloc(sizeof(Model));
    if (*kept == NULL) return fmi3Error;
    memcpy(*kept, from, sizeof(Model));
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference unknowns[],
    size_t nu, const fmi3ValueReference knowns[], size_t nk, const fmi3Float64 seed[], size_t ns,
    fmi3Float64 out[], size_t no)
{
#if DERIVATIVES
    if (ns < nk || no < nu) return fmi3Error;
    return derivative(c, unknowns, nu, knowns, nk, seed, out) ? fmi3OK : fmi3Error;
#else
    UNUSED(c); UNUSED(unknowns); UNUSED(nu); UNUSED(knowns); UNUSED(nk); UNUSED(seed); UNUSED(ns);
    UNUSED(out); UNUSED(no);
    return fmi3Error;
#endif
}

EXPORT fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    const int32_t order[], fmi3Float64 v[], size_t nv)
{
    UNUSED(c); UNUSED(r); UNUSED(order); UNUSED(v); UNUSED(nv);
    return n == 0 ? fmi3OK : fmi3Error;
}

EXPORT fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 from, fmi3Float64 length, fmi3Boolean keep,
    fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last)
{
    const int status = advance(c, from, length);
    UNUSED(keep);
    *event = *terminate = *early = false;
    *last = ((Model *)c)->s.t;
    return status == ${upper}_OK ? fmi3OK : fmi3Discard;
}

/* What other kinds of models need, and this one has not. */
EXPORT fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference r[], size_t n, size_t
    sizes[], const fmi3Byte *v[], size_t nv)
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(sizes); UNUSED(v); UNUSED(nv);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference r[], size_t n, const size_t
    sizes[], const fmi3Byte *const v[], size_t nv)
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(sizes); UNUSED(v); UNUSED(nv);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetClock(fmi3Instance c, const fmi3ValueReference r[], size_t n, fmi3Boolean
    v[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(v);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference r[], size_t n, const
    fmi3Boolean v[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(v);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance c, fmi3ValueReference r, size_t
    *n)
{
    UNUSED(c); UNUSED(r); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetVariableDependencies(fmi3Instance c, fmi3ValueReference r, size_t own[],
    fmi3ValueReference others[], size_t theirs[], int kinds[], size_t n)
{
    UNUSED(c); UNUSED(r); UNUSED(own); UNUSED(others); UNUSED(theirs); UNUSED(kinds); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference unknowns[],
    size_t nu, const fmi3ValueReference knowns[], size_t nk, const fmi3Float64 seed[], size_t ns,
    fmi3Float64 out[], size_t no)
{
    UNUSED(c); UNUSED(unknowns); UNUSED(nu); UNUSED(knowns); UNUSED(nk); UNUSED(seed);
    UNUSED(ns); UNUSED(out); UNUSED(no);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetIntervalDecimal(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    fmi3Float64 intervals[], int qualifiers[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(intervals); UNUSED(qualifiers);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetIntervalFraction(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    uint64_t counters[], uint64_t resolutions[], int qualifiers[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(counters); UNUSED(resolutions); UNUSED(qualifiers);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetShiftDecimal(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    fmi3Float64 shifts[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(shifts);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetShiftFraction(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    uint64_t counters[], uint64_t resolutions[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(counters); UNUSED(resolutions);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetIntervalDecimal(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    const fmi3Float64 intervals[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(intervals);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetIntervalFraction(fmi3Instance c, const fmi3ValueReference r[], size_t n,
    const uint64_t counters[], const uint64_t resolutions[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(counters); UNUSED(resolutions);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetShiftDecimal(fmi3Instance c, const fmi3ValueReference r[], size_t n, const
    fmi3Float64 shifts[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(shifts);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetShiftFraction(fmi3Instance c, const fmi3ValueReference r[], size_t n, const
    uint64_t counters[], const uint64_t resolutions[])
{
    UNUSED(c); UNUSED(r); UNUSED(n); UNUSED(counters); UNUSED(resolutions);
    return fmi3Error;
}
EXPORT fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance c)
{
    UNUSED(c);
    return fmi3Error;
}
EXPORT fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *end,
    fmi3Boolean *nominals, fmi3Boolean *values, fmi3Boolean *defined, fmi3Float64 *next)
{
    UNUSED(c); UNUSED(again); UNUSED(end); UNUSED(nominals); UNUSED(values); UNUSED(defined);
    UNUSED(next);
    return fmi3Error;
}
EXPORT fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c)
{
    UNUSED(c);
    return fmi3Error;
}
EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean keep, fmi3Boolean *event,
    fmi3Boolean *end)
{
    UNUSED(c); UNUSED(keep); UNUSED(event); UNUSED(end);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 time)
{
    UNUSED(c); UNUSED(time);
    return fmi3Error;
}
EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    UNUSED(c); UNUSED(x); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    UNUSED(c); UNUSED(x); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    UNUSED(c); UNUSED(x); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    UNUSED(c); UNUSED(x); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    UNUSED(c); UNUSED(x); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n)
{
    UNUSED(c); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n)
{
    UNUSED(c); UNUSED(n);
    return fmi3Error;
}
EXPORT fmi3Status fmi3ActivateModelPartition(fmi3Instance c, fmi3ValueReference clock, fmi3Float64
    time)
{
    UNUSED(c); UNUSED(clock); UNUSED(time);
    return fmi3Error;
}
