/* One rigid body about a fixed point, or free: the Lie-Verlet step with the Cayley map, by hand.
 *
 * What retrax's LieVerlet(Cayley()) computes, written as a C programmer would: scalars only, the
 * Jacobian by hand, one division per linear solve. A step of size h from (R, mu) with moments I and
 * torque(R) = w x R^T e3, where w is weight times arm (zero for a free body):
 *
 *     mu+ = mu + h/2 torque(R)                                              (1) kick
 *     mu+ = I xi + h/2 xi x I xi + h^2/4 (xi . I xi) xi                     (2) solve for xi
 *     R'  = R + R (F - 1),  F - 1 = 4/(4 + |h xi|^2) (hat + hat^2/2)(h xi)  (3) drift
 *     mu' = mu + h/2 torque(R) + (F - 1)^T mu+ + h/2 torque(R')             (4) kick
 *
 * There are two loops around it. `run` solves (2) until it has converged, as retrax does, and says
 * where it has not. `run_lean` is the fastest that is known: two Newton iterations whatever they
 * leave, and the kicks at the end of a step and at the beginning of the next in one.
 */
#include <float.h>
#include <math.h>

#define AIM (2 * DBL_EPSILON)
#define ACCEPT (128 * DBL_EPSILON)
#define MAX_ITERATIONS 25

typedef struct {
    double r[9], mu[3];
} State;

static inline double larger(double a, double b) { return a > b ? a : b; }

static inline double largest(double a, double b, double c) {
    return larger(larger(fabs(a), fabs(b)), fabs(c));
}

static inline void cross(const double a[3], const double b[3], double out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* The left side of (2) minus mu+; p = I xi and q = h^2/4 xi . I xi are kept for the Jacobian. */
static inline void mismatch(const double inertia[3], const double goal[3], double h,
                            const double xi[3], double p[3], double *q, double out[3]) {
    double turn[3];
    for (int i = 0; i < 3; i++) p[i] = inertia[i] * xi[i];
    cross(xi, p, turn);
    *q = h * h / 4 * (xi[0] * p[0] + xi[1] * p[1] + xi[2] * p[2]);
    for (int i = 0; i < 3; i++) out[i] = p[i] + h / 2 * turn[i] + *q * xi[i] - goal[i];
}

/* xi <- xi - J^-1 residual, where J = I + h/2 (hat(xi) I - hat(I xi)) + q 1 + h^2/2 xi (I xi)^T. */
static inline void improve(const double inertia[3], double h, const double p[3], double q,
                           const double residual[3], double xi[3]) {
    double c = h / 2, d = h * h / 2, column[3][3], yz[3], zx[3], xy[3];
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
    double scale = 1 / (column[0][0] * yz[0] + column[0][1] * yz[1] + column[0][2] * yz[2]);
    double a = residual[0], b = residual[1], e = residual[2];
    xi[0] -= scale * (yz[0] * a + yz[1] * b + yz[2] * e);
    xi[1] -= scale * (zx[0] * a + zx[1] * b + zx[2] * e);
    xi[2] -= scale * (xy[0] * a + xy[1] * b + xy[2] * e);
}

/* F - 1 of (3), and R turned by it. */
static inline void drift(double r[9], double h, const double xi[3], double f[9]) {
    double x = h * xi[0], y = h * xi[1], z = h * xi[2];
    double xx = x * x / 2, yy = y * y / 2, zz = z * z / 2;
    double xy = x * y / 2, xz = x * z / 2, yz = y * z / 2, a = 2 / (2 + xx + yy + zz);
    f[0] = -a * (yy + zz), f[1] = a * (xy - z), f[2] = a * (xz + y);
    f[3] = a * (xy + z), f[4] = -a * (xx + zz), f[5] = a * (yz - x);
    f[6] = a * (xz - y), f[7] = a * (yz + x), f[8] = -a * (xx + yy);
    for (int i = 0; i < 3; i++) {                                                   /* (3) */
        double u = r[3 * i], v = r[3 * i + 1], t = r[3 * i + 2];
        for (int j = 0; j < 3; j++) r[3 * i + j] += u * f[j] + v * f[3 + j] + t * f[6 + j];
    }
}

/* One step; the number of Newton iterations, or -1 where they do not converge. */
static inline int step(State *s, const double inertia[3], const double inverse[3],
                       const double w[3], int heavy, double h) {
    double kick[3] = {0, 0, 0}, goal[3], xi[3], rate[3], p[3], q, residual[3];
    double *mu = s->mu, *r = s->r;
    if (heavy) {
        cross(w, r + 6, kick);
        for (int i = 0; i < 3; i++) kick[i] *= h / 2;
    }
    for (int i = 0; i < 3; i++) goal[i] = mu[i] + kick[i];                          /* (1) */
    for (int i = 0; i < 3; i++) xi[i] = inverse[i] * mu[i];
    cross(mu, xi, rate);
    for (int i = 0; i < 3; i++) xi[i] = inverse[i] * (goal[i] + h / 2 * rate[i]);

    double size = largest(mu[0], mu[1], mu[2]), before = INFINITY;
    int k = 0;
    for (;; k++) {                                                                  /* (2) */
        mismatch(inertia, goal, h, xi, p, &q, residual);
        double now = largest(residual[0], residual[1], residual[2]);
        if (now <= AIM * size || (now <= ACCEPT * size && now > before / 2)) break;
        if (k == MAX_ITERATIONS || !(now < INFINITY)) return -1;
        before = now;
        improve(inertia, h, p, q, residual, xi);
    }

    double f[9];
    drift(r, h, xi, f);
    for (int j = 0; j < 3; j++)                                                     /* (4) */
        mu[j] += kick[j] + goal[0] * f[j] + goal[1] * f[3 + j] + goal[2] * f[6 + j];
    if (heavy) {
        cross(w, r + 6, kick);
        for (int i = 0; i < 3; i++) mu[i] += h / 2 * kick[i];
    }
    return k;
}

/* `records` times `every` steps, each composed of `stages` steps of the given fractions of h. The
 * state is saved after each record. Returns all Newton iterations, or -1 where one did not converge.
 */
static inline long run(double *state, const double *inertia, const double *w, int heavy, double h,
                       const double *fractions, long stages, long records, long every,
                       double *out) {
    State s = *(State *)state;
    double moments[3], inverse[3], arm[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        moments[i] = inertia[i];
        inverse[i] = 1 / inertia[i];
        if (heavy) arm[i] = w[i];
    }
    long iterations = 0;
    for (long record = 0; record < records; record++) {
        for (long k = 0; k < every; k++)
            for (long stage = 0; stage < stages; stage++) {
                int count = step(&s, moments, inverse, arm, heavy, fractions[stage] * h);
                if (count < 0) return -1;
                iterations += count;
            }
        ((State *)out)[record] = s;
    }
    *(State *)state = s;
    return iterations;
}

/* mu + c torque(R). */
static inline void kick(State *s, const double w[3], double c) {
    double torque[3];
    cross(w, s->r + 6, torque);
    for (int i = 0; i < 3; i++) s->mu[i] += c * torque[i];
}

/* (2) by two Newton iterations, (3), and (4) without its kicks. */
static inline void lean_step(State *s, const double inertia[3], const double inverse[3],
                             double h) {
    double *mu = s->mu, xi[3], rate[3], p[3], q, residual[3], f[9];
    for (int i = 0; i < 3; i++) xi[i] = inverse[i] * mu[i];
    cross(mu, xi, rate);
    for (int i = 0; i < 3; i++) xi[i] += h / 2 * inverse[i] * rate[i];
    for (int k = 0; k < 2; k++) {
        mismatch(inertia, mu, h, xi, p, &q, residual);
        improve(inertia, h, p, q, residual, xi);
    }
    drift(s->r, h, xi, f);
    double goal[3] = {mu[0], mu[1], mu[2]};
    for (int j = 0; j < 3; j++) mu[j] += goal[0] * f[j] + goal[1] * f[3 + j] + goal[2] * f[6 + j];
}

/* As `run`; returns -1 where a record ends with something that is not a number. */
static inline long run_lean(double *state, const double *inertia, const double *w, int heavy,
                            double h, const double *fractions, long stages, long records,
                            long every, double *out) {
    State s = *(State *)state;
    double moments[3], inverse[3], arm[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        moments[i] = inertia[i];
        inverse[i] = 1 / inertia[i];
        if (heavy) arm[i] = w[i];
    }
    double first = h / 2 * fractions[0], last = h / 2 * fractions[stages - 1];
    for (long record = 0; record < records; record++) {
        if (heavy) kick(&s, arm, first);
        for (long k = 0; k < every; k++) {
            for (long stage = 0; stage < stages - 1; stage++) {
                lean_step(&s, moments, inverse, fractions[stage] * h);
                if (heavy) kick(&s, arm, h / 2 * (fractions[stage] + fractions[stage + 1]));
            }
            lean_step(&s, moments, inverse, fractions[stages - 1] * h);
            if (heavy) kick(&s, arm, k == every - 1 ? last : last + first);
        }
        if (!(fabs(s.mu[0] + s.mu[1] + s.mu[2]) < INFINITY)) return -1;
        ((State *)out)[record] = s;
    }
    *(State *)state = s;
    return 2 * records * every * stages;
}

long free_body(double *state, const double *inertia, double h, const double *fractions,
               long stages, long records, long every, double *out) {
    return run(state, inertia, 0, 0, h, fractions, stages, records, every, out);
}

long heavy_body(double *state, const double *inertia, const double *w, double h,
                const double *fractions, long stages, long records, long every, double *out) {
    return run(state, inertia, w, 1, h, fractions, stages, records, every, out);
}

long free_body_lean(double *state, const double *inertia, double h, const double *fractions,
                    long stages, long records, long every, double *out) {
    return run_lean(state, inertia, 0, 0, h, fractions, stages, records, every, out);
}

long heavy_body_lean(double *state, const double *inertia, const double *w, double h,
                     const double *fractions, long stages, long records, long every, double *out) {
    return run_lean(state, inertia, w, 1, h, fractions, stages, records, every, out);
}
