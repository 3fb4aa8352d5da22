"""Sobol's sequence: points that fill a space evenly, each coordinate between 0 and 1.

Direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008.
"""

from __future__ import annotations

BITS = 32

# Per dimension from the second on: degree and coefficients of the primitive polynomial, the first direction numbers.
_POLYNOMIALS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
)
DIMENSIONS = len(_POLYNOMIALS) + 1
"""As many hyperparameters as can be drawn together."""


def point(number: int, shifts: tuple[int, ...]) -> tuple[float, ...]:
    """One point of the sequence, shifted bit by bit.

    Args:
        number: From 0.
        shifts: One word of `BITS` bits for each dimension; zeros give the sequence as it is.
    """
    return tuple(_coordinate(number, dimension, shift) for dimension, shift in enumerate(shifts))


def _coordinate(number: int, dimension: int, shift: int) -> float:
    directions = _directions(dimension)
    gray, word = number ^ (number >> 1), shift
    for bit in range(BITS):
        if gray >> bit & 1:
            word ^= directions[bit]
    return (word + 0.5) / (1 << BITS)  # never 0, never 1


def _directions(dimension: int) -> list[int]:
    if dimension == 0:
        return [1 << (BITS - 1 - bit) for bit in range(BITS)]
    degree, coefficients, first = _POLYNOMIALS[dimension - 1]
    found = [number << (BITS - 1 - bit) for bit, number in enumerate(first)]
    for bit in range(degree, BITS):
        word = found[bit - degree] ^ (found[bit - degree] >> degree)
        for step in range(1, degree):
            if coefficients >> (degree - 1 - step) & 1:
                word ^= found[bit - step]
        found.append(word)
    return found
