"""Motions and numbers of mechanisms that are known without retrax."""

import numpy as np
from scipy.special import ellipj, ellipk

GRAVITY = 9.81


def four_bar_angle(N, t, rate=1.0):
    """The angle of the cranks of N four-bars that pass the top at t = 0, at the rate -rate.

    a phi'' = -b cos phi. With theta = phi + pi/2 from below, theta' = -s sqrt(1 - m
    sin^2(theta/2)), where s is the rate below and m = 4 b / (a s^2) < 1: it goes round and round.
    """
    a, b = (N + 1) / 3 + N, GRAVITY * ((N + 1) / 2 + N)
    below = np.sqrt(rate**2 + 4 * b / a)
    m = 4 * b / a / below**2
    _, _, _, amplitude = ellipj(below * np.asarray(t) / 2 + ellipk(m), m)
    return np.pi / 2 - (2 * amplitude - np.pi)


# The benchmark bicycle: the coefficients of the linearised equations of lean and steer as printed,
# M q'' + v C1 q' + (g K0 + v^2 K2) q = 0.
BICYCLE_M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
BICYCLE_K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
BICYCLE_K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
BICYCLE_C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])


def bicycle_eigenvalues(v, g=GRAVITY):
    """The four eigenvalues of lean and steer at the speed v."""
    C, K = v * BICYCLE_C1, g * BICYCLE_K0 + v**2 * BICYCLE_K2
    inverse = np.linalg.inv(BICYCLE_M)
    return np.linalg.eigvals(
        np.block([[np.zeros((2, 2)), np.eye(2)], [-inverse @ K, -inverse @ C]])
    )


# Andrews' squeezing mechanism at t = 0.03 s: beta, Theta, gamma, Phi, delta, Omega, epsilon.
ANDREWS = np.array(
    [
        15.81077119629904,
        -15.75637105984298,
        0.04082224013073101,
        -0.5347301163226948,
        0.5244099658805304,
        0.5347301163226948,
        1.048080741042263,
    ]
)
ANDREWS_RATES = np.array(
    [
        1139.920302151208,
        -1424.379294994111,
        11.03291221937134,
        19.29337464421385,
        0.5735699284790808,
        -19.29337464421385,
        0.3231791658026955,
    ]
)
