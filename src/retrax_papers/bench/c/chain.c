/* A chain of n spherical pendulums by RATTLE on (SO(3) x R^3)^n.
 *
 * What retrax's LieVerlet() computes on a chain of bodies with balls in sockets, written as a C
 * programmer would: Newton's matrix is made once a step, where it is expected to end, bodies are
 * eliminated before joints, joints one after the other (3 x 3 blocks), and iterations with the same
 * matrix remove the rest; then the velocities are put on the joints. Body k hangs at its point `a`
 * from the point `b` of body k - 1, or from the origin. Inertia is diagonal.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#define MOST 1024
#define AIM (2 * DBL_EPSILON)
#define BEST 1e-3
#define PROXIMAL 1e-9

typedef double V[3];
typedef double M[3][3];

static long n;
static double mass[MOST], gravity[3];
static V J[MOST], a[MOST], b[MOST];
static M R[MOST], R1[MOST], soft[MOST], A0[MOST], B0[MOST], A1[MOST], B1[MOST];
static V x[MOST], mu[MOST], p[MOST], w[MOST], v[MOST], x1[MOST], lam[MOST], more[MOST], r1[MOST],
    r3[MOST], q[MOST], wlast[MOST], vlast[MOST], llast[MOST];
static M P[MOST], L[MOST], U[MOST];

static inline double dot(const V s, const V t) { return s[0] * t[0] + s[1] * t[1] + s[2] * t[2]; }
static inline void cross(const V s, const V t, V o) {
    o[0] = s[1] * t[2] - s[2] * t[1], o[1] = s[2] * t[0] - s[0] * t[2];
    o[2] = s[0] * t[1] - s[1] * t[0];
}
static inline void times(M A, const V s, V o) {
    for (int i = 0; i < 3; i++) o[i] = dot(A[i], s);
}
static inline void transposed(M A, const V s, V o) {
    for (int i = 0; i < 3; i++) o[i] = A[0][i] * s[0] + A[1][i] * s[1] + A[2][i] * s[2];
}
static inline void inverse(M A, M o) {
    V yz, zx, xy;
    V c0 = {A[0][0], A[1][0], A[2][0]}, c1 = {A[0][1], A[1][1], A[2][1]},
      c2 = {A[0][2], A[1][2], A[2][2]};
    cross(c1, c2, yz), cross(c2, c0, zx), cross(c0, c1, xy);
    double d = 1 / dot(c0, yz);
    for (int i = 0; i < 3; i++) o[0][i] = d * yz[i], o[1][i] = d * zx[i], o[2][i] = d * xy[i];
}

/* cay(h w) - 1, and R + R (cay - 1) with the rounding errors of R taken out. */
static inline void cayley(const V y, M F) {
    double c = 4 / (4 + dot(y, y));
    F[0][0] = -c * (y[1] * y[1] + y[2] * y[2]) / 2, F[1][1] = -c * (y[0] * y[0] + y[2] * y[2]) / 2;
    F[2][2] = -c * (y[0] * y[0] + y[1] * y[1]) / 2;
    F[0][1] = c * (y[0] * y[1] / 2 - y[2]), F[1][0] = c * (y[0] * y[1] / 2 + y[2]);
    F[0][2] = c * (y[0] * y[2] / 2 + y[1]), F[2][0] = c * (y[0] * y[2] / 2 - y[1]);
    F[1][2] = c * (y[1] * y[2] / 2 - y[0]), F[2][1] = c * (y[1] * y[2] / 2 + y[0]);
}
static inline void advance(M R, M F, M o) {
    M H, G;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            H[i][j] = (R[0][i] * R[0][j] + R[1][i] * R[1][j] + R[2][i] * R[2][j] - (i == j)) / 2;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            G[i][j] = F[i][j] - H[i][j]
                      - (H[i][0] * F[0][j] + H[i][1] * F[1][j] + H[i][2] * F[2][j]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            o[i][j] = R[i][j] + R[i][0] * G[0][j] + R[i][1] * G[1][j] + R[i][2] * G[2][j];
}

/* The rows of a point s of a body by its angular velocity: -R hat(s). */
static inline void arm(M R, const V s, M o) {
    for (int i = 0; i < 3; i++)
        o[i][0] = R[i][2] * s[1] - R[i][1] * s[2], o[i][1] = R[i][0] * s[2] - R[i][2] * s[0],
        o[i][2] = R[i][1] * s[0] - R[i][0] * s[1];
}

static void arms(M *R, M *A, M *B) {
    for (long k = 0; k < n; k++) arm(R[k], a[k], A[k]), arm(R[k], b[k], B[k]);
}

/* W^T lambda: body k has joint k at a, with plus, and joint k + 1 at b, with minus. */
static void pushes(M *A, M *B, V *l, V *turn, V *travel) {
    for (long k = 0; k < n; k++) {
        V s, t = {0, 0, 0};
        transposed(A[k], l[k], s);
        if (k < n - 1) transposed(B[k], l[k + 1], t);
        for (int i = 0; i < 3; i++)
            turn[k][i] = s[i] - t[i], travel[k][i] = l[k][i] - (k < n - 1 ? l[k + 1][i] : 0);
    }
}

/* W xi for each joint. */
static void across(M *A, M *B, V *spin, V *speed, V *o) {
    for (long k = 0; k < n; k++) {
        V s, t = {0, 0, 0};
        times(A[k], spin[k], s);
        if (k) times(B[k - 1], spin[k - 1], t);
        for (int i = 0; i < 3; i++)
            o[k][i] = s[i] + speed[k][i] - (k ? t[i] + speed[k - 1][i] : 0);
    }
}

/* X S Y^T + 1 / m */
static inline void through(M X, M S, M Y, double light, double sign, M o) {
    M T;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            T[i][j] = X[i][0] * S[0][j] + X[i][1] * S[1][j] + X[i][2] * S[2][j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) o[i][j] += sign * (dot(T[i], Y[j]) + (i == j) * light);
}

static void factor(M *LA, M *LB, M *A, M *B) {
    M C = {{0}};
    for (long k = 0; k < n; k++) {
        M D = {{0}}, u = {{0}}, l = {{0}};
        through(LA[k], soft[k], A[k], 1 / mass[k], 1, D);
        if (k) through(LB[k - 1], soft[k - 1], B[k - 1], 1 / mass[k - 1], 1, D);
        for (int i = 0; i < 3; i++) {
            D[i][i] *= 1 + PROXIMAL;
            for (int j = 0; j < 3; j++) D[i][j] -= C[i][j];
        }
        inverse(D, P[k]);
        if (k == n - 1) break;
        through(LA[k], soft[k], B[k], 1 / mass[k], -1, u);
        through(LB[k], soft[k], A[k], 1 / mass[k], -1, l);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                L[k][i][j] = l[i][0] * P[k][0][j] + l[i][1] * P[k][1][j] + l[i][2] * P[k][2][j];
                U[k][i][j] = P[k][i][0] * u[0][j] + P[k][i][1] * u[1][j] + P[k][i][2] * u[2][j];
            }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                C[i][j] = L[k][i][0] * u[0][j] + L[k][i][1] * u[1][j] + L[k][i][2] * u[2][j];
    }
}

static void solve(V *y) {
    V t;
    for (long k = 1; k < n; k++) {
        times(L[k - 1], y[k - 1], t);
        for (int i = 0; i < 3; i++) y[k][i] -= t[i];
    }
    for (long k = n - 1; k >= 0; k--) {
        times(P[k], y[k], t);
        if (k < n - 1) {
            V s;
            times(U[k], y[k + 1], s);
            for (int i = 0; i < 3; i++) t[i] -= s[i];
        }
        memcpy(y[k], t, sizeof t);
    }
}

/* (dR tau^-1)^* J w and its derivative: J w - y x J w / 2 + (y . J w) y / 4 with y = h w. */
static inline void spun(double h, const V J, const V w, V o) {
    V y = {h * w[0], h * w[1], h * w[2]}, m = {J[0] * w[0], J[1] * w[1], J[2] * w[2]}, t;
    cross(y, m, t);
    double s = dot(y, m) / 4;
    for (int i = 0; i < 3; i++) o[i] = m[i] - t[i] / 2 + s * y[i];
}
static inline void slope(double h, const V J, const V w, M D) {
    V y = {h * w[0], h * w[1], h * w[2]}, m = {J[0] * w[0], J[1] * w[1], J[2] * w[2]};
    double s = dot(y, m) / 4;
    for (int j = 0; j < 3; j++) {
        V dm = {0, 0, 0}, dy = {0, 0, 0}, t, u;
        dm[j] = J[j], dy[j] = h;
        cross(dy, m, t), cross(y, dm, u);
        double ds = (h * m[j] + y[j] * J[j]) / 4;
        for (int i = 0; i < 3; i++) D[i][j] = dm[i] - (t[i] + u[i]) / 2 + ds * y[i] + s * dy[i];
    }
}

/* X (dL tau)_{h w}: rows by the velocity of the whole step. */
static inline void carried(double h, const V w, M X) {
    V y = {h * w[0], h * w[1], h * w[2]};
    double c = 4 / (4 + dot(y, y));
    for (int i = 0; i < 3; i++) {
        V t;
        cross(y, X[i], t);
        for (int j = 0; j < 3; j++) X[i][j] = c * (X[i][j] + t[j] / 2);
    }
}

static V pushed[MOST], moved[MOST], gap[MOST];

static double missed(double h, double arms_) {
    double size = 0, terms = 0, open = 0;
    pushes(A0, B0, lam, pushed, moved);
    for (long k = 0; k < n; k++) {
        V has, y = {h * w[k][0], h * w[k][1], h * w[k][2]};
        M F;
        spun(h, J[k], w[k], has);
        cayley(y, F), advance(R[k], F, R1[k]);
        for (int i = 0; i < 3; i++) {
            double kick = h / 2 * mass[k] * gravity[i], m = mass[k] * v[k][i];
            x1[k][i] = x[k][i] + h * v[k][i];
            r1[k][i] = has[i] - mu[k][i] - pushed[k][i];
            r3[k][i] = m - (p[k][i] + kick) - moved[k][i];
            size += fabs(r1[k][i]) + fabs(r3[k][i]);
            terms += fabs(has[i]) + fabs(m) + fabs(kick) + fabs(pushed[k][i]) + fabs(moved[k][i]);
        }
    }
    for (long k = 0; k < n; k++) {
        V s, t = {0, 0, 0};
        times(R1[k], a[k], s);
        if (k) times(R1[k - 1], b[k - 1], t);
        for (int i = 0; i < 3; i++) {
            gap[k][i] = x1[k][i] + s[i] - (k ? x1[k - 1][i] + t[i] : 0);
            open += fabs(gap[k][i]);
        }
    }
    return size / terms + open / arms_;
}

static int step(double h, double last) {
    double share = h / last, size = INFINITY, before = INFINITY, left = INFINITY, far = 0;
    arms(R, A0, B0);
    for (long k = 0; k < n; k++)
        for (int i = 0; i < 3; i++) {
            double spin = mu[k][i] / J[k][i], speed = p[k][i] / mass[k];
            w[k][i] = spin + share * (spin - wlast[k][i]);
            v[k][i] = speed + share * (speed - vlast[k][i]);
            lam[k][i] = share * llast[k][i];
            far += fabs(x[k][i]) * 2;
            for (int j = 0; j < 3; j++) far += fabs(A0[k][i][j]) + fabs(B0[k][i][j]);
        }
    /* the matrix, at the guess */
    for (long k = 0; k < n; k++) {
        V y = {h * w[k][0], h * w[k][1], h * w[k][2]};
        M F, D;
        cayley(y, F), advance(R[k], F, R1[k]);
        slope(h, J[k], w[k], D), inverse(D, soft[k]);
    }
    arms(R1, A1, B1);
    for (long k = 0; k < n; k++) carried(h, w[k], A1[k]), carried(h, w[k], B1[k]);
    factor(A1, B1, A0, B0);
    int count = 0;
    while (left > AIM) {
        if (count++ == 25) return -1;
        size = missed(h, far);
        static V s1[MOST], s3[MOST];
        for (long k = 0; k < n; k++) {
            times(soft[k], r1[k], s1[k]);
            for (int i = 0; i < 3; i++) s3[k][i] = r3[k][i] / mass[k];
        }
        across(A1, B1, s1, s3, more);
        for (long k = 0; k < n; k++)
            for (int i = 0; i < 3; i++) more[k][i] -= gap[k][i] / h;
        solve(more);
        pushes(A0, B0, more, pushed, moved);
        for (long k = 0; k < n; k++) {
            V d, t;
            for (int i = 0; i < 3; i++) t[i] = pushed[k][i] - r1[k][i];
            times(soft[k], t, d);
            for (int i = 0; i < 3; i++) {
                w[k][i] += d[i], v[k][i] += (moved[k][i] - r3[k][i]) / mass[k];
                lam[k][i] += more[k][i];
            }
        }
        double gain = fmin(fmax(size / before, BEST), 1);
        left = size <= 64 * DBL_EPSILON && size > before / 2 ? fmin(size, AIM) : size * gain;
        before = size;
    }
    /* the end: momenta, and velocities put on the joints */
    pushes(A0, B0, lam, pushed, moved);
    for (long k = 0; k < n; k++) {
        V y = {h * w[k][0], h * w[k][1], h * w[k][2]}, t;
        M F;
        cayley(y, F), advance(R[k], F, R1[k]);
        for (int i = 0; i < 3; i++) t[i] = mu[k][i] + pushed[k][i];
        transposed(F, t, r1[k]);
        for (int i = 0; i < 3; i++) {
            mu[k][i] += pushed[k][i] + r1[k][i];
            p[k][i] += h * mass[k] * gravity[i] + moved[k][i];
            x[k][i] += h * v[k][i];
            for (int j = 0; j < 3; j++) soft[k][i][j] = (i == j) / J[k][i];
        }
        memcpy(R[k], R1[k], sizeof(M));
    }
    memcpy(wlast, w, n * sizeof(V)), memcpy(vlast, v, n * sizeof(V));
    memset(llast, 0, n * sizeof(V));
    arms(R, A1, B1), factor(A1, B1, A1, B1);
    for (int round = 0; round < 2; round++) {
        static V s1[MOST], s3[MOST];
        for (long k = 0; k < n; k++)
            for (int i = 0; i < 3; i++)
                s1[k][i] = mu[k][i] / J[k][i], s3[k][i] = p[k][i] / mass[k];
        across(A1, B1, s1, s3, more);
        solve(more);
        for (long k = 0; k < n; k++)
            for (int i = 0; i < 3; i++) more[k][i] = -more[k][i], llast[k][i] += more[k][i];
        pushes(A1, B1, more, pushed, moved);
        for (long k = 0; k < n; k++)
            for (int i = 0; i < 3; i++) mu[k][i] += pushed[k][i], p[k][i] += moved[k][i];
    }
    return count;
}

/* The last state after `steps`: R, x, then momenta, as (n, 9), (n, 3), (n, 6). */
long chain(const double *start, const double *data, long bodies, double h, long steps,
           double *end) {
    if (bodies > MOST) return -1;
    n = bodies;
    memcpy(gravity, data, sizeof gravity);
    for (long k = 0; k < n; k++) {
        const double *own = data + 3 + 10 * k, *m = start + 12 * n + 6 * k;
        mass[k] = own[0];
        memcpy(J[k], own + 1, sizeof(V)), memcpy(a[k], own + 4, sizeof(V));
        memcpy(b[k], own + 7, sizeof(V));
        memcpy(R[k], start + 9 * k, sizeof(M)), memcpy(x[k], start + 9 * n + 3 * k, sizeof(V));
        memcpy(mu[k], m, sizeof(V)), memcpy(p[k], m + 3, sizeof(V));
        for (int i = 0; i < 3; i++)
            wlast[k][i] = mu[k][i] / J[k][i], vlast[k][i] = p[k][i] / mass[k], llast[k][i] = 0;
    }
    long iterations = 0;
    for (long s = 0; s < steps; s++) {
        int done = step(h, s ? h : 1.0);
        if (done < 0) return -1;
        iterations += done;
    }
    for (long k = 0; k < n; k++) {
        memcpy(end + 9 * k, R[k], sizeof(M)), memcpy(end + 9 * n + 3 * k, x[k], sizeof(V));
        memcpy(end + 12 * n + 6 * k, mu[k], sizeof(V));
        memcpy(end + 12 * n + 6 * k + 3, p[k], sizeof(V));
    }
    return iterations;
}
