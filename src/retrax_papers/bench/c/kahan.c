/* Euler's top by Kahan's method: the explicit rational map, by hand.
 *
 * m' = (a1 m2 m3, a2 m3 m1, a3 m1 m2), a step of size h = 2e. With the squares s_i = m_i^2 and
 * p = (e^2 a2 a3, e^2 a3 a1, e^2 a1 a2),
 *
 *     D   = 1 - p1 s1 - p2 s2 - p3 s3 - 2 e^3 a1 a2 a3 m1 m2 m3                       (1)
 *     m1' = (m1 (1 - p1 s1 + p2 s2 + p3 s3) + 2 e a1 m2 m3) / D,  and cyclic          (2)
 */

typedef struct {
    double m[3];
} State;

/* `records` times `every` steps, the state saved after each record. Returns the number of steps, or
 * -1 - the number of steps taken where a pole was crossed. */
long euler_top(double *state, const double *inertia, double h, long records, long every,
               double *out) {
    double a1 = 1 / inertia[2] - 1 / inertia[1], a2 = 1 / inertia[0] - 1 / inertia[2],
           a3 = 1 / inertia[1] - 1 / inertia[0];
    double e = h / 2, p1 = e * e * a2 * a3, p2 = e * e * a3 * a1, p3 = e * e * a1 * a2;
    double b1 = h * a1, b2 = h * a2, b3 = h * a3, c = 2 * e * e * e * a1 * a2 * a3;
    double x = state[0], y = state[1], z = state[2];
    for (long record = 0; record < records; record++) {
        for (long k = 0; k < every; k++) {
            double xy = x * y, yz = y * z, zx = z * x;
            double u = p1 * x * x, v = p2 * y * y, w = p3 * z * z;
            double d = 1 - u - v - w - c * xy * z;                                  /* (1) */
            if (!(d > 0)) return -1 - record * every - k;
            double r = 1 / d;
            x = r * (x * (1 - u + v + w) + b1 * yz);                                /* (2) */
            y = r * (y * (1 + u - v + w) + b2 * zx);
            z = r * (z * (1 + u + v - w) + b3 * xy);
        }
        ((State *)out)[record] = (State){{x, y, z}};
    }
    state[0] = x, state[1] = y, state[2] = z;
    return records * every;
}
