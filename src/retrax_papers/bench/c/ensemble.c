/* Many free rigid bodies: the step of lgvi.c on vectors of LANES bodies, blocks shared by threads.
 *
 * In memory every quantity is a row and the bodies are columns: state[12][members]. A block of
 * bodies is loaded once, taken through all steps in registers, and stored. Newton's iteration runs
 * until all bodies of the block have converged, as in lgvi.c, or, where `newton` is not zero, that
 * many times without looking at the residual.
 */
#include <float.h>
#include <pthread.h>
#include <string.h>

#define LANES 8
#define AIM (2 * DBL_EPSILON)
#define ACCEPT (128 * DBL_EPSILON)
#define MAX_ITERATIONS 25
#define MAX_THREADS 256

typedef double V __attribute__((vector_size(8 * LANES)));
typedef long M __attribute__((vector_size(8 * LANES)));

typedef struct {
    double *state;
    const double *inertia;
    double h;
    long members, steps, newton, first, last, failed;
} Job;

static inline V choose(M test, V a, V b) { return (V)((test & (M)a) | (~test & (M)b)); }

static inline V absolute(V a) { return (V)((M)a & 0x7fffffffffffffffL); }

static inline V larger(V a, V b) { return choose(a > b, a, b); }

static inline V largest(const V a[3]) {
    return larger(larger(absolute(a[0]), absolute(a[1])), absolute(a[2]));
}

static inline int any(M test) {
    long found = 0;
    for (int i = 0; i < LANES; i++) found |= test[i];
    return found != 0;
}

static inline void cross(const V a[3], const V b[3], V out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline void mismatch(const double inertia[3], const V goal[3], double h, const V xi[3],
                            V p[3], V *q, V out[3]) {
    V turn[3];
    for (int i = 0; i < 3; i++) p[i] = inertia[i] * xi[i];
    cross(xi, p, turn);
    *q = h * h / 4 * (xi[0] * p[0] + xi[1] * p[1] + xi[2] * p[2]);
    for (int i = 0; i < 3; i++) out[i] = p[i] + h / 2 * turn[i] + *q * xi[i] - goal[i];
}

static inline void correction(const double inertia[3], double h, const V xi[3], const V p[3], V q,
                              const V residual[3], V out[3]) {
    double c = h / 2, d = h * h / 2;
    V column[3][3], yz[3], zx[3], xy[3];
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) column[j][i] = d * xi[i] * p[j];
        column[j][j] += inertia[j] + q;
    }
    column[1][0] += c * (p[2] - xi[2] * inertia[1]);
    column[2][0] -= c * (p[1] - xi[1] * inertia[2]);
    column[0][1] -= c * (p[2] - xi[2] * inertia[0]);
    column[2][1] += c * (p[0] - xi[0] * inertia[2]);
    column[0][2] += c * (p[1] - xi[1] * inertia[0]);
    column[1][2] -= c * (p[0] - xi[0] * inertia[1]);
    cross(column[1], column[2], yz);
    cross(column[2], column[0], zx);
    cross(column[0], column[1], xy);
    V scale = 1 / (column[0][0] * yz[0] + column[0][1] * yz[1] + column[0][2] * yz[2]);
    V a = residual[0], b = residual[1], e = residual[2];
    out[0] = scale * (yz[0] * a + yz[1] * b + yz[2] * e);
    out[1] = scale * (zx[0] * a + zx[1] * b + zx[2] * e);
    out[2] = scale * (xy[0] * a + xy[1] * b + xy[2] * e);
}

/* Solve (2) of lgvi.c; whether some body did not converge. A body that has converged stays put. */
static inline int solve(const double inertia[3], const V mu[3], double h, long newton, V xi[3]) {
    V p[3], q, residual[3], delta[3];
    if (newton) {
        for (long k = 0; k < newton; k++) {
            mismatch(inertia, mu, h, xi, p, &q, residual);
            correction(inertia, h, xi, p, q, residual, delta);
            for (int i = 0; i < 3; i++) xi[i] -= delta[i];
        }
        return 0;
    }
    V size = largest(mu), before = largest(mu) * 1e300;
    for (int k = 0; k <= MAX_ITERATIONS; k++) {
        mismatch(inertia, mu, h, xi, p, &q, residual);
        V now = largest(residual);
        M todo = ~((now <= AIM * size) | ((now <= ACCEPT * size) & (now > before / 2)));
        if (!any(todo)) return 0;
        before = now;
        correction(inertia, h, xi, p, q, residual, delta);
        for (int i = 0; i < 3; i++) xi[i] -= (V)(todo & (M)delta[i]);
    }
    return 1;
}

static inline int step(V r[9], V mu[3], const double inertia[3], const double inverse[3], double h,
                       long newton) {
    V xi[3], rate[3];
    for (int i = 0; i < 3; i++) xi[i] = inverse[i] * mu[i];
    cross(mu, xi, rate);
    for (int i = 0; i < 3; i++) xi[i] = inverse[i] * (mu[i] + h / 2 * rate[i]);
    int failed = solve(inertia, mu, h, newton, xi);

    V x = h * xi[0], y = h * xi[1], z = h * xi[2];
    V xx = x * x / 2, yy = y * y / 2, zz = z * z / 2;
    V xy = x * y / 2, xz = x * z / 2, yz = y * z / 2, a = 2 / (2 + xx + yy + zz);
    V f[9] = {-a * (yy + zz), a * (xy - z), a * (xz + y),
              a * (xy + z), -a * (xx + zz), a * (yz - x),
              a * (xz - y), a * (yz + x), -a * (xx + yy)};
    for (int i = 0; i < 3; i++) {
        V u = r[3 * i], v = r[3 * i + 1], t = r[3 * i + 2];
        for (int j = 0; j < 3; j++) r[3 * i + j] += u * f[j] + v * f[3 + j] + t * f[6 + j];
    }
    V old[3] = {mu[0], mu[1], mu[2]};
    for (int j = 0; j < 3; j++) mu[j] += old[0] * f[j] + old[1] * f[3 + j] + old[2] * f[6 + j];
    return failed;
}

/* Bodies first <= b < last; a block that is not full repeats its first body. */
static void *work(void *argument) {
    Job *job = argument;
    double inertia[3], inverse[3];
    for (int i = 0; i < 3; i++) {
        inertia[i] = job->inertia[i];
        inverse[i] = 1 / inertia[i];
    }
    for (long b = job->first; b < job->last; b += LANES) {
        long bytes = 8 * (job->last - b < LANES ? job->last - b : LANES);
        V s[12];
        for (int i = 0; i < 12; i++) {
            double *row = job->state + i * job->members + b;
            s[i] = (V){} + row[0];
            memcpy(&s[i], row, bytes);
        }
        for (long k = 0; k < job->steps; k++)
            job->failed |= step(s, s + 9, inertia, inverse, job->h, job->newton);
        for (int i = 0; i < 12; i++) memcpy(job->state + i * job->members + b, &s[i], bytes);
    }
    return 0;
}

/* Take all bodies through `steps` steps; 0, or 1 where one did not converge. */
long free_bodies(double *state, const double *inertia, double h, long members, long steps,
                 long newton, long threads) {
    pthread_t thread[MAX_THREADS];
    Job jobs[MAX_THREADS];
    long blocks = (members + LANES - 1) / LANES, failed = 0;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    for (long t = 0; t < threads; t++) {
        long last = blocks * (t + 1) / threads * LANES;
        jobs[t] = (Job){state, inertia, h, members, steps, newton, blocks * t / threads * LANES,
                        last < members ? last : members, 0};
        if (t) pthread_create(&thread[t], 0, work, &jobs[t]);
    }
    work(&jobs[0]);
    for (long t = 0; t < threads; t++) {
        if (t) pthread_join(thread[t], 0);
        failed |= jobs[t].failed;
    }
    return failed;
}
