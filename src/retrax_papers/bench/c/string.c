/* A rigid body on an elastic string: kicks, and a drift from which the string is eliminated.
 *
 * What retrax's LieVerlet() computes on a StringPendulum with one body at the end, written as a C
 * programmer would: forces are kept from one step to the next, nodes are stored coordinate by
 * coordinate, the tridiagonal matrix is factorised once, the attitude equation
 *
 *     J~ x = g + g x x / 2 + (g . x) x / 4,    F = cay(x)
 *
 * is solved by Newton's method with the Jacobian by hand. Letters as in systems/strings/drift.py.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#define AIM (2 * DBL_EPSILON)
#define ACCEPT (128 * DBL_EPSILON)
#define MAX_ITERATIONS 25
#define MOST 4096

typedef struct {
    long n;
    double u, kappa, gravity, mass, arm[3], inertia[9], reduced[9];
    double weight[MOST], ratio[MOST], inverse[MOST], column[MOST];
} String;

static String S;
static double r[3][MOST], p[3][MOST], f[3][MOST], y[3][MOST], t[3][MOST], R[9], pi_[3];

static inline void cross(const double a[3], const double b[3], double out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline double dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* A x and A^T x for a matrix stored by rows. */
static inline void times(const double A[9], const double x[3], double out[3]) {
    for (int i = 0; i < 3; i++) out[i] = dot(A + 3 * i, x);
}

static inline void transposed(const double A[9], const double x[3], double out[3]) {
    for (int i = 0; i < 3; i++) out[i] = A[i] * x[0] + A[i + 3] * x[1] + A[i + 6] * x[2];
}

static void forces(void) {
    long n = S.n;
    double before[3] = {0, 0, 0};
    double first[3];
    for (int i = 0; i < 3; i++) first[i] = r[i][0] - before[i];
    double s = S.kappa * (1 - S.u / sqrt(dot(first, first)));
    for (int i = 0; i < 3; i++) t[i][0] = s * first[i];
    for (long k = 1; k < n; k++) {
        double a = r[0][k] - r[0][k - 1], b = r[1][k] - r[1][k - 1], c = r[2][k] - r[2][k - 1];
        double q = S.kappa * (1 - S.u / sqrt(a * a + b * b + c * c));
        t[0][k] = q * a, t[1][k] = q * b, t[2][k] = q * c;
    }
    for (int i = 0; i < 3; i++) {
        for (long k = 0; k < n - 1; k++) f[i][k] = t[i][k + 1] - t[i][k];
        f[i][n - 1] = -t[i][n - 1];
    }
    for (long k = 0; k < n; k++) f[2][k] += S.gravity * S.weight[k];
}

/* x - J^-1 residual with the matrix J, by cross products of its columns. */
static inline void solve(double J[3][3], const double b[3], double out[3]) {
    double yz[3], zx[3], xy[3];
    cross(J[1], J[2], yz), cross(J[2], J[0], zx), cross(J[0], J[1], xy);
    double d = 1 / dot(J[0], yz);
    out[0] = d * dot(yz, b), out[1] = d * dot(zx, b), out[2] = d * dot(xy, b);
}

/* The attitude equation; the number of iterations, or -1. */
static int turn(const double g[3], double x[3]) {
    double J[3][3], residual[3], terms = 0, size, before;
    const double *K = S.reduced;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) J[j][i] = K[3 * i + j];
    solve(J, g, x);
    double scale = fmax(fmax(fabs(g[0]), fabs(g[1])), fabs(g[2]));
    for (int k = 0;; k++) {
        double Kx[3], turned[3], q = dot(g, x) / 4;
        times(K, x, Kx), cross(g, x, turned);
        size = 0;
        for (int i = 0; i < 3; i++) {
            residual[i] = g[i] + turned[i] / 2 + q * x[i] - Kx[i];
            size += fabs(residual[i]);
        }
        if (k && size <= ACCEPT * terms && size > before / 2) return k;
        if (k ? size <= AIM * terms : size == 0) return k;
        if (k == MAX_ITERATIONS || !(size == size)) return -1;
        before = size;
        for (int j = 0; j < 3; j++) {
            for (int i = 0; i < 3; i++) J[j][i] = x[i] * g[j] / 4 - K[3 * i + j];
            J[j][j] += q;
        }
        J[0][1] += g[2] / 2, J[0][2] -= g[1] / 2, J[1][0] -= g[2] / 2;
        J[1][2] += g[0] / 2, J[2][0] += g[1] / 2, J[2][1] -= g[0] / 2;
        double step[3];
        solve(J, residual, step);
        terms = scale;
        for (int i = 0; i < 3; i++) x[i] -= step[i];
        for (int j = 0; j < 3; j++)
            terms += (fabs(J[j][0]) + fabs(J[j][1]) + fabs(J[j][2])) * fabs(x[j]);
    }
}

static int step(double h) {
    long n = S.n;
    double torque[3], kicked[3], end[3], lever[3], g[3], x[3], v[3];
    cross(S.arm, R + 6, torque);
    for (int i = 0; i < 3; i++) {
        for (long k = 0; k < n; k++) p[i][k] += h / 2 * f[i][k];
        kicked[i] = pi_[i] + h / 2 * S.mass * S.gravity * torque[i];
    }
    /* y = T^-1 p, in two sweeps */
    for (int i = 0; i < 3; i++) y[i][0] = p[i][0];
    for (long k = 1; k < n; k++)
        for (int i = 0; i < 3; i++) y[i][k] = p[i][k] - S.ratio[k] * y[i][k - 1];
    for (int i = 0; i < 3; i++) y[i][n - 1] *= S.inverse[n - 1];
    for (long k = n - 2; k >= 0; k--)
        for (int i = 0; i < 3; i++)
            y[i][k] = S.inverse[k] * y[i][k] - S.ratio[k + 1] * y[i][k + 1];
    for (int i = 0; i < 3; i++) end[i] = y[i][n - 1];
    transposed(R, end, v), cross(S.arm, v, lever);
    for (int i = 0; i < 3; i++) g[i] = h * (kicked[i] - S.mass * lever[i]);
    int iterations = turn(g, x);
    if (iterations < 0) return -1;
    /* F - 1, what it does to the arm, and where everything goes */
    double c = 4 / (4 + dot(x, x)), F[9], swung[3], w[3], d[3];
    double xx[3] = {x[0] * x[0], x[1] * x[1], x[2] * x[2]};
    F[0] = -c * (xx[1] + xx[2]) / 2, F[4] = -c * (xx[0] + xx[2]) / 2;
    F[8] = -c * (xx[0] + xx[1]) / 2;
    F[1] = c * (x[0] * x[1] / 2 - x[2]), F[3] = c * (x[0] * x[1] / 2 + x[2]);
    F[2] = c * (x[0] * x[2] / 2 + x[1]), F[6] = c * (x[0] * x[2] / 2 - x[1]);
    F[5] = c * (x[1] * x[2] / 2 - x[0]), F[7] = c * (x[1] * x[2] / 2 + x[0]);
    times(F, S.arm, swung), times(R, swung, w);
    for (int i = 0; i < 3; i++) w[i] *= S.mass;
    for (int i = 0; i < 3; i++)
        for (long k = 0; k < n; k++) {
            y[i][k] = h * y[i][k] - S.column[k] * w[i];
            r[i][k] += y[i][k];
        }
    for (int i = 0; i < 3; i++) d[i] = y[i][n - 1];
    /* the change of the body momentum */
    double Jx[3], gyration[3], back[3], turned[3];
    times(S.inertia, x, Jx), cross(x, Jx, gyration);
    transposed(R, d, v), transposed(F, v, back), cross(S.arm, back, turned);
    for (int i = 0; i < 3; i++)
        pi_[i] = kicked[i] + (S.mass * turned[i] - c * gyration[i]) / h;
    /* R + R (F - 1), the rounding errors of R taken out */
    double A[9], out[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            A[3 * i + j] = F[3 * i + j] - (R[i] * R[j] + R[i + 3] * R[j + 3] + R[i + 6] * R[j + 6]
                                           - (i == j)) / 2;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = R[3 * i + j] + R[3 * i] * A[j] + R[3 * i + 1] * A[3 + j]
                             + R[3 * i + 2] * A[6 + j];
    memcpy(R, out, sizeof R);
    forces();
    cross(S.arm, R + 6, torque);
    for (int i = 0; i < 3; i++) {
        for (long k = 0; k < n; k++) p[i][k] += h / 2 * f[i][k];
        pi_[i] += h / 2 * S.mass * S.gravity * torque[i];
    }
    return iterations;
}

/* Records of (r, R, p, pi), nodes first; `data` and `tables` as packed in bench/strings.py. */
long string_pendulum(const double *start, const double *data, const double *tables, long n,
                     double h, long records, long every, double *saved) {
    if (n > MOST) return -1;
    S.n = n, S.u = data[0], S.kappa = data[1], S.gravity = data[2], S.mass = data[3];
    memcpy(S.arm, data + 4, sizeof S.arm);
    memcpy(S.inertia, data + 7, sizeof S.inertia);
    memcpy(S.reduced, data + 16, sizeof S.reduced);
    memcpy(S.weight, tables, n * sizeof(double));
    memcpy(S.ratio, tables + n, n * sizeof(double));
    memcpy(S.inverse, tables + 2 * n, n * sizeof(double));
    memcpy(S.column, tables + 3 * n, n * sizeof(double));
    for (long k = 0; k < n; k++)
        for (int i = 0; i < 3; i++)
            r[i][k] = start[3 * k + i], p[i][k] = start[3 * n + 9 + 3 * k + i];
    memcpy(R, start + 3 * n, sizeof R);
    memcpy(pi_, start + 6 * n + 9, sizeof pi_);
    forces();
    long iterations = 0;
    for (long k = 0; k < records; k++) {
        for (long j = 0; j < every; j++) {
            int done = step(h);
            if (done < 0) return -1;
            iterations += done;
        }
        double *out = saved + k * (6 * n + 12);
        for (long a = 0; a < n; a++)
            for (int i = 0; i < 3; i++)
                out[3 * a + i] = r[i][a], out[3 * n + 9 + 3 * a + i] = p[i][a];
        memcpy(out + 3 * n, R, sizeof R);
        memcpy(out + 6 * n + 9, pi_, sizeof pi_);
    }
    return iterations;
}
