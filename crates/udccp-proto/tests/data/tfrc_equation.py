"""Makes tfrc_equation.csv: f(p) of RFC 5348 section 8.1 with 40 digits (python3, mpmath)."""

from mpmath import mp, mpf, sqrt, nstr

mp.dps = 40


def f(p):
    return sqrt(2 * p / 3) + 12 * sqrt(3 * p / 8) * p * (1 + 32 * p * p)


print("p,f")
for tenth in range(-80, 1):
    p = mpf(nstr(mpf(10) ** (mpf(tenth) / 10), 6))
    print(f"{nstr(p, 6)},{nstr(f(p), 17)}")
