/* The functions of FMI 2.0 for co-simulation. */
typedef void *fmi2Component;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;

#define COUNTED(type) fmi2Component c, const fmi2ValueReference r[], size_t n, type v[]
#define UNUSED(what) (void)(what)

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String w[])
{
    UNUSED(c); UNUSED(on); UNUSED(n); UNUSED(w);
    return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(fmi2String name, int type, fmi2String guid, fmi2String place,
    const void *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    Model *m;
    UNUSED(name); UNUSED(place); UNUSED(functions); UNUSED(visible); UNUSED(logging);
    if (type != 1 || guid == NULL || strcmp(guid, TOKEN) != 0) return NULL;
    m = calloc(1, sizeof *m);
    if (m != NULL) ${name}_defaults(&m->p, &m->s);
    return m;
}

EXPORT void fmi2FreeInstance(fmi2Component c) { free(c); }

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean known, fmi2Real tolerance,
    fmi2Real start, fmi2Boolean stops, fmi2Real stop)
{
    UNUSED(known); UNUSED(tolerance); UNUSED(stops); UNUSED(stop);
    ((Model *)c)->s.t = start;
    return fmi2OK;
}

EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { UNUSED(c); return fmi2OK; }
EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    ((Model *)c)->before = ((Model *)c)->s;
    return fmi2OK;
}
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { UNUSED(c); return fmi2OK; }
EXPORT fmi2Status fmi2Reset(fmi2Component c)
{
    memset(c, 0, sizeof(Model));
    ${name}_defaults(&((Model *)c)->p, &((Model *)c)->s);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetReal(COUNTED(fmi2Real))
{
    for (size_t k = 0; k < n; ++k) {
        const double *x = r[k] == TIME ? &((Model *)c)->s.t : number(c, r[k]);
        if (x == NULL) return fmi2Error;
        v[k] = *x;
    }
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetReal(COUNTED(const fmi2Real))
{
    for (size_t k = 0; k < n; ++k) {
        double *x = number(c, r[k]);
        if (x == NULL) return fmi2Error;
        if (*x != v[k] && !is_input(r[k])) ${name}_restart(&((Model *)c)->s);
        *x = v[k];
    }
    return fmi2OK;
}

#define NO_SUCH(function, type) EXPORT fmi2Status function(COUNTED(type)) \
    { UNUSED(c); UNUSED(r); UNUSED(v); return n == 0 ? fmi2OK : fmi2Error; }
NO_SUCH(fmi2GetInteger, fmi2Integer)
NO_SUCH(fmi2GetBoolean, fmi2Boolean)
NO_SUCH(fmi2GetString, fmi2String)
NO_SUCH(fmi2SetInteger, const fmi2Integer)
NO_SUCH(fmi2SetBoolean, const fmi2Boolean)
NO_SUCH(fmi2SetString, const fmi2String)

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *kept)
{
    if (*kept == NULL) *kept = malloc(sizeof(Model));
    if (*kept == NULL) return fmi2Error;
    memcpy(*kept, c, sizeof(Model));
    return fmi2OK;
}
EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate kept)
{
    memcpy(c, kept, sizeof(Model));
    return fmi2OK;
}
EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *kept)
{
    UNUSED(c);
    free(*kept);
    *kept = NULL;
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate kept, size_t *size)
{
    UNUSED(c); UNUSED(kept);
    *size = sizeof(Model);
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate kept, fmi2Byte to[], size_t size)
{
    UNUSED(c);
    if (size < sizeof(Model)) return fmi2Error;
    memcpy(to, kept, sizeof(Model));
    return fmi2OK;
}
EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte from[], size_t size,
    fmi2FMUstate *kept)
{
    UNUSED(c);
    if (size < sizeof(Model)) return fmi2Error;
    if (*kept == NULL) *kept = malloc(sizeof(Model));
    if (*kept == NULL) return fmi2Error;
    memcpy(*kept, from, sizeof(Model));
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[],
    size_t nu, const fmi2ValueReference knowns[], size_t nk, const fmi2Real seed[], fmi2Real out[])
{
#if DERIVATIVES
    return derivative(c, unknowns, nu, knowns, nk, seed, out) ? fmi2OK : fmi2Error;
#else
    UNUSED(c); UNUSED(unknowns); UNUSED(nu); UNUSED(knowns); UNUSED(nk); UNUSED(seed); UNUSED(out);
    return fmi2Error;
#endif
}

EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference r[],
    size_t n, const fmi2Integer order[], const fmi2Real v[])
{
    UNUSED(c); UNUSED(r); UNUSED(order); UNUSED(v);
    return n == 0 ? fmi2OK : fmi2Error;
}
EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference r[],
    size_t n, const fmi2Integer order[], fmi2Real v[])
{
    UNUSED(c); UNUSED(r); UNUSED(order); UNUSED(v);
    return n == 0 ? fmi2OK : fmi2Error;
}

EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real from, fmi2Real length, fmi2Boolean keep)
{
    UNUSED(keep);
    return advance(c, from, length) == ${upper}_OK ? fmi2OK : fmi2Discard;
}
EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { UNUSED(c); return fmi2Error; }

EXPORT fmi2Status fmi2GetStatus(fmi2Component c, int kind, fmi2Status *v)
{
    UNUSED(c); UNUSED(kind); UNUSED(v);
    return fmi2Discard;
}
EXPORT fmi2Status fmi2GetRealStatus(fmi2Component c, int kind, fmi2Real *v)
{
    if (kind != 2) return fmi2Discard;
    *v = ((Model *)c)->s.t; /* the last successful time */
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetIntegerStatus(fmi2Component c, int kind, fmi2Integer *v)
{
    UNUSED(c); UNUSED(kind); UNUSED(v);
    return fmi2Discard;
}
EXPORT fmi2Status fmi2GetBooleanStatus(fmi2Component c, int kind, fmi2Boolean *v)
{
    UNUSED(c);
    if (kind != 3) return fmi2Discard;
    *v = 0; /* the master ends the simulation, not the model */
    return fmi2OK;
}
EXPORT fmi2Status fmi2GetStringStatus(fmi2Component c, int kind, fmi2String *v)
{
    UNUSED(c); UNUSED(kind); UNUSED(v);
    return fmi2Discard;
}
