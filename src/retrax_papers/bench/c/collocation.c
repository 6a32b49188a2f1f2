// Gauss collocation on SO(3) for a heavy rigid body: what somebody who knows the method would write.
//
// The stages lie in the lanes of vectors of eight; lanes beyond the last stage have zero weights.
// A sweep takes the rates of the momenta at the stages, and then the velocities with the new
// momenta. The first stages of a step are those of the one before, extrapolated.

#include <math.h>

typedef double lanes __attribute__((vector_size(64)));
typedef struct { lanes x, y, z; } vector;

#define BLOCKS 2
#define SWEEPS 60

static inline vector cross(vector a, vector b) {
    return (vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Even functions of an angle from its square, by Taylor polynomials: for angles up to 2.
static inline lanes sinc(lanes t) {
    return 1 + t * (-1. / 6 + t * (1. / 120 + t * (-1. / 5040 + t * (1. / 362880 + t * (-1. / 39916800
        + t * (1. / 6227020800. + t * (-1. / 1307674368000. + t * (1. / 355687428096000.))))))));
}

static inline lanes cosc(lanes t) {
    return .5 + t * (-1. / 24 + t * (1. / 720 + t * (-1. / 40320 + t * (1. / 3628800
        + t * (-1. / 479001600 + t * (1. / 87178291200. + t * (-1. / 20922789888000.)))))));
}

static inline lanes cotc(lanes t) {
    return 1. / 12 + t * (1. / 720 + t * (1. / 30240 + t * (1. / 1209600 + t * (1. / 47900160
        + t * (691. / 1307674368000. + t * (1. / 74724249600.
        + t * (3617. / 10670622842880000. + t * (43867. / 5109094217170944000.))))))));
}

// y_i = sum_j table_ij x_j, with the table stored column by column.
static inline void product(const lanes *table, const vector *x, int stages, int blocks, vector *y) {
    vector sum[BLOCKS] = {0};
    for (int j = 0; j < stages; j++) {
        const double a = x[j / 8].x[j % 8], b = x[j / 8].y[j % 8], c = x[j / 8].z[j % 8];
        for (int k = 0; k < blocks; k++) {
            const lanes t = table[j * BLOCKS + k];
            sum[k].x += t * a, sum[k].y += t * b, sum[k].z += t * c;
        }
    }
    for (int k = 0; k < blocks; k++) y[k] = sum[k];
}

static inline double total(lanes e) {
    return ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]));
}

static inline lanes absolute(lanes x) {
    typedef long bits __attribute__((vector_size(64)));
    return (lanes)((bits)x & 0x7fffffffffffffff);
}

static inline lanes size(vector a) { return absolute(a.x) + absolute(a.y) + absolute(a.z); }

// One sweep over the rates of configurations (ku) and momenta (km); returns how much they change.
static inline double sweep(const lanes *A, const double *R, const double *mu, const double *J,
                           const double *w, int stages, int blocks, vector *ku, vector *km) {
    vector U[BLOCKS], M[BLOCKS];
    lanes change = {0};
    product(A, ku, stages, blocks, U);
    product(A, km, stages, blocks, M);
    for (int k = 0; k < blocks; k++) {
        const vector u = U[k];
        const vector m = {mu[0] + M[k].x, mu[1] + M[k].y, mu[2] + M[k].z};
        const vector xi = {m.x / J[0], m.y / J[1], m.z / J[2]};
        const lanes t = u.x * u.x + u.y * u.y + u.z * u.z, s = sinc(t), c = cosc(t), zero = {0};
        const vector g = {R[6] + zero, R[7] + zero, R[8] + zero};
        const vector ug = cross(u, g), uug = cross(u, ug);
        const vector down = {g.x - s * ug.x + c * uug.x, g.y - s * ug.y + c * uug.y,
                             g.z - s * ug.z + c * uug.z};
        const vector arm = {w[0] + zero, w[1] + zero, w[2] + zero};
        const vector turn = cross(m, xi), pull = cross(arm, down);
        const vector rate = {turn.x + pull.x, turn.y + pull.y, turn.z + pull.z};
        change += size((vector){rate.x - km[k].x, rate.y - km[k].y, rate.z - km[k].z});
        km[k] = rate;
    }
    product(A, km, stages, blocks, M);
    for (int k = 0; k < blocks; k++) {
        const vector u = U[k];
        const vector xi = {(mu[0] + M[k].x) / J[0], (mu[1] + M[k].y) / J[1], (mu[2] + M[k].z) / J[2]};
        const lanes f = cotc(u.x * u.x + u.y * u.y + u.z * u.z);
        const vector a = cross(u, xi), b = cross(u, a);
        const vector rate = {xi.x + .5 * a.x + f * b.x, xi.y + .5 * a.y + f * b.y,
                             xi.z + .5 * a.z + f * b.z};
        change += size((vector){rate.x - ku[k].x, rate.y - ku[k].y, rate.z - ku[k].z});
        ku[k] = rate;
    }
    return total(change);
}

static inline double weighted(const double *b, const double *rate, int stages) {
    double sum = 0;
    for (int j = 0; j < stages; j++) sum += b[j] * rate[j];
    return sum;
}

static inline void finish(double *R, double *mu, const double *b, int stages, int blocks,
                          const vector *ku, const vector *km) {
    double K[6][8 * BLOCKS], u[3];
    for (int k = 0; k < blocks; k++)
        for (int i = 0; i < 8; i++) {
            const vector a = ku[k], c = km[k];
            const double all[6] = {a.x[i], a.y[i], a.z[i], c.x[i], c.y[i], c.z[i]};
            for (int q = 0; q < 6; q++) K[q][8 * k + i] = all[q];
        }
    for (int q = 0; q < 3; q++) u[q] = weighted(b, K[q], stages), mu[q] += weighted(b, K[q + 3], stages);
    const double x = u[0], y = u[1], z = u[2], t = x * x + y * y + z * z, a = sqrt(t);
    const double s = a > 1e-4 ? sin(a) / a : 1 - t / 6, half = sin(a / 2);
    const double c = a > 1e-4 ? 2 * half * half / t : .5 - t / 24;
    const double D[9] = {-c * (y * y + z * z), c * x * y - s * z, c * x * z + s * y,
                         c * x * y + s * z, -c * (x * x + z * z), c * y * z - s * x,
                         c * x * z - s * y, c * y * z + s * x, -c * (x * x + y * y)};
    for (int i = 0; i < 3; i++) {
        double *row = R + 3 * i;
        const double p = row[0], q = row[1], r = row[2];
        for (int j = 0; j < 3; j++) row[j] += p * D[j] + q * D[3 + j] + r * D[6 + j];
    }
}

static inline long run(double *state, const double *J, const double *w, int stages, int blocks,
                       const lanes *A, const lanes *ahead, const double *b, long steps) {
    double *R = state, *mu = state + 9;
    vector ku[BLOCKS] = {0}, km[BLOCKS] = {0};
    long sweeps = 0;
    for (int k = 0; k < blocks; k++)
        ku[k] = (vector){mu[0] / J[0] + (lanes){0}, mu[1] / J[1] + (lanes){0}, mu[2] / J[2] + (lanes){0}};
    for (long n = 0; n < steps; n++) {
        if (n > 0) {
            vector pu[BLOCKS], pm[BLOCKS];
            product(ahead, ku, stages, blocks, pu);
            product(ahead, km, stages, blocks, pm);
            for (int k = 0; k < blocks; k++) ku[k] = pu[k], km[k] = pm[k];
        }
        double before = INFINITY;
        int i = 0;
        for (; i < SWEEPS; i++) {
            const double change = sweep(A, R, mu, J, w, stages, blocks, ku, km);
            if (!(change == change)) return -1;
            if (change < 1e-13 || (change < 1e-9 && change >= before)) break;
            before = change;
        }
        if (i == SWEEPS) return -1;
        sweeps += i + 1;
        finish(R, mu, b, stages, blocks, ku, km);
    }
    return sweeps;
}

// `steps` steps from `state` (R row by row, then the body momentum), which is overwritten. `tables`:
// h a_ij, then the extrapolation to the next step, column by column, in 16 lanes each; then h b_j.
// The number of sweeps, or -1 where they do not converge.
long heavy_body_gauss(double *state, const double *J, const double *w, long stages,
                      const double *tables, long steps) {
    const lanes *A = (const lanes *)tables, *ahead = A + 16 * BLOCKS;
    const double *b = (const double *)(ahead + 16 * BLOCKS);
    switch (stages) {
        case 6: return run(state, J, w, 6, 1, A, ahead, b, steps);
        case 8: return run(state, J, w, 8, 1, A, ahead, b, steps);
        case 10: return run(state, J, w, 10, 2, A, ahead, b, steps);
        case 12: return run(state, J, w, 12, 2, A, ahead, b, steps);
        default: return run(state, J, w, stages, 2, A, ahead, b, steps);
    }
}
