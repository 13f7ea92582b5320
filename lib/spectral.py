"""Two-sided spectral rating: one SVD of a judges x items matrix rates the judges and the items, with no key.

Source: The Metanym Game, section 3.3 and Appendix A.2 (A5-A9), A.4 (aligned bootstrap), A.6 (permutation
null). Throughout, `ratings[judge, item]` holds raw ratings, NaN where a judge gave none. The sign needs one
convention only: v . (column means of the centred matrix) = sigma1 * sum(u) / n_judges, so a u with positive
sum is the same choice as a v that correlates positively with the column means.
"""

from dataclasses import dataclass

import numpy as np

ZERO = 1e-10  # singular values and loadings below this share of the matrix's scale are rounding, not signal


class SpectralError(ValueError):
    """A rating matrix from which no axis can be read; the message says what is degenerate."""


@dataclass(frozen=True)
class TwoSided:
    """What one factorisation says.

    sigma[k] singular values, largest first; left[judge] = u and right[item] = v, unit vectors, signed so that
    sum(u) > 0; loadings[judge] = f+ = max(u, 0); level = C (rating scale); scale = kappa (rating points per
    unit of v); consensus[item] = C + kappa v on the rating scale; basis[judge, 2] the two leading left
    vectors.
    """

    sigma: np.ndarray
    left: np.ndarray
    right: np.ndarray
    loadings: np.ndarray
    level: float
    scale: float
    consensus: np.ndarray
    basis: np.ndarray

    @property
    def gap(self) -> float:
        """sigma1 / sigma2, the spectral gap; infinite where nothing is left after the leading axis.

        >>> two_sided([[5, 6, 8], [5, 6, 8]], "row_mean").gap
        inf
        """
        return float(self.sigma[0] / self.sigma[1]) if self.sigma[1] > ZERO * self.sigma[0] else np.inf


def fill_missing(ratings, fill=7.0) -> np.ndarray:
    """`ratings` with missing entries filled (A5): by a number, or by "row_mean", the judge's own mean.

    Raises SpectralError for a matrix without two judges and two items, an infinite entry, or (row_mean) a
    judge who rated nothing.

    >>> fill_missing([[5, np.nan, 7], [4, 6, 8]], "row_mean")
    array([[5., 6., 7.],
           [4., 6., 8.]])
    """
    ratings = np.asarray(ratings, dtype=float)
    if ratings.ndim != 2 or min(ratings.shape) < 2:
        raise SpectralError(
            f"ratings[judge, item] needs at least two judges and two items, not shape {ratings.shape}"
        )
    if np.isinf(ratings).any():
        raise SpectralError("ratings hold an infinite entry; a missing one is NaN")
    missing = np.isnan(ratings)
    if fill != "row_mean":
        return np.where(missing, float(fill), ratings)
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        raise SpectralError(f"judge {empty[0]} rated no item, so it has no mean to fill with")
    means = np.nansum(ratings, axis=1) / (~missing).sum(axis=1)
    return np.where(missing, means[:, None], ratings)


def two_sided(ratings, fill=7.0) -> TwoSided:
    """Factorise the row-centred matrix and read both sides (A5-A8).

    ratings[judge, item] on the rating scale. Raises SpectralError where every judge is constant (no axis) or
    the loadings sum to zero (no side of the axis is the better one). left, right and consensus are rounded to 10
    decimals, below which processors differ.

    >>> found = two_sided([[5, 6, 8], [4, 6, 9]], "row_mean")
    >>> found.consensus.round(2), found.loadings.round(2)
    (array([4.38, 6.  , 8.62]), array([0.52, 0.86]))
    """
    filled = fill_missing(ratings, fill)
    means = filled.mean(axis=1)
    vectors, sigma, rows = np.linalg.svd(filled - means[:, None], full_matrices=False)
    _check_axis(sigma[0], filled)
    total = vectors[:, 0].sum()
    if abs(total) < ZERO:
        raise SpectralError(
            "the leading left vector sums to zero: the judges split evenly over which items are "
            "the better ones, so the axis has no orientation"
        )
    sign = np.sign(total)
    left, right = sign * vectors[:, 0], sign * rows[0]
    left = np.where(np.abs(left) < ZERO, 0.0, left)
    loadings = np.maximum(left, 0)
    weight = loadings.sum()
    level = float(loadings @ means / weight)
    scale = float(sigma[0] * (loadings @ left) / weight)
    basis = np.column_stack([left, vectors[:, 1]])
    consensus = (level + scale * right).round(10)
    return TwoSided(sigma, left.round(10), right.round(10), loadings, level, scale, consensus, basis)


def anchored(values, index: int, at: float = 7.0) -> np.ndarray:
    """Rescale so that entry `index` of the last axis reads `at` (A12): 7 f / f_a.

    values[..., judge]. Where the anchor's own value is zero or missing the result is NaN throughout.

    >>> anchored([0.2, 0.4, 0.1], 1)
    array([3.5 , 7.  , 1.75])
    """
    values = np.asarray(values, dtype=float)
    unit = values[..., index, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(unit) > ZERO, at * values / unit, np.nan)


def group_means(consensus, group_of, n_groups: int) -> np.ndarray:
    """Mean consensus of each generator's own items (A9): consensus[item], group_of[item] -> [group].

    A group without items is NaN.

    >>> group_means([5.0, 7.0, 8.0], [0, 0, 1], 3)
    array([ 6.,  8., nan])
    """
    group_of = np.asarray(group_of)
    size = np.bincount(group_of, minlength=n_groups)
    total = np.bincount(group_of, weights=np.asarray(consensus, dtype=float), minlength=n_groups)
    with np.errstate(invalid="ignore"):
        return np.where(size > 0, total / np.maximum(size, 1), np.nan)


@dataclass(frozen=True)
class AtomSums:
    """Sums over the items of each atom (a block that is resampled whole), enough to rebuild any resample's
    SVD.

    products[atom, judge, judge] of ratings, totals[atom, judge] of ratings, size[atom] items; missing filled.
    """

    products: np.ndarray
    totals: np.ndarray
    size: np.ndarray

    def select(self, atoms, judges) -> "AtomSums":
        """The same sums for some atoms and judges (index arrays).

        >>> sums = atom_sums([[5, 6, 8], [4, 6, 9]], [0, 1, 1], 2)
        >>> sums.select([1], [0, 1]).totals
        array([[14., 15.]])
        """
        return AtomSums(
            self.products[atoms][:, judges][:, :, judges], self.totals[atoms][:, judges], self.size[atoms]
        )


def atom_sums(ratings, atom_of, n_atoms: int, fill=7.0) -> AtomSums:
    """Sums per atom of ratings[judge, item]; atom_of[item] in 0..n_atoms-1 (an atom may be empty).

    >>> atom_sums([[5, 6, 8], [4, 6, 9]], [0, 1, 1], 2).totals
    array([[ 5.,  4.],
           [14., 15.]])
    """
    filled = fill_missing(ratings, fill)
    atom_of = np.asarray(atom_of)
    member = (atom_of[None, :] == np.arange(n_atoms)[:, None]).astype(float)
    products = np.einsum("ai,ji,ki->ajk", member, filled, filled, optimize=True)
    return AtomSums(products, member @ filled.T, member.sum(axis=1))


@dataclass(frozen=True)
class Replicates:
    """Resampled factorisations: loadings[b, judge] (aligned, clamped), left[b, judge], sigma[b, 2], level[b],
    scale[b], means[b, judge] (row means), norm[b] = |F'u|, the length that turns F'u into v."""

    loadings: np.ndarray
    left: np.ndarray
    sigma: np.ndarray
    level: np.ndarray
    scale: np.ndarray
    means: np.ndarray
    norm: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """sigma1 / sigma2 of each replicate.

        >>> ratings = [[5, 6, 8, 7], [4, 6, 9, 5]]
        >>> sums = atom_sums(ratings, range(4), 4)
        >>> found = resample(sums, np.ones((1, 4)), two_sided(ratings).basis)
        >>> bool(np.isclose(found.gap[0], two_sided(ratings).gap))
        True
        """
        floor = ZERO * self.sigma[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sigma[:, 1] > floor, self.sigma[:, 0] / self.sigma[:, 1], np.inf)


def resample(sums: AtomSums, counts, basis) -> Replicates:
    """All replicates at once: weighted Gram matrices, batched eigendecompositions, Procrustes, A7-A8.

    counts[b, atom] says how often each atom was drawn; basis[judge, 2] is the full sample's leading left
    subspace, to which every replicate's is rotated before its first column is read (Appendix A.4). No SVD of
    the judges x items matrix is taken: its left side is the eigenbasis of the small judges x judges Gram matrix.
    A replicate without an axis (all judges constant) has NaN loadings.

    >>> ratings = [[5, 6, 8, 7], [4, 6, 9, 5]]
    >>> found = resample(atom_sums(ratings, range(4), 4), np.ones((1, 4)), two_sided(ratings).basis)
    >>> bool(np.allclose(found.loadings[0], two_sided(ratings).loadings))
    True
    """
    counts = np.asarray(counts, dtype=float)
    n_judges = sums.totals.shape[1]
    size = counts @ sums.size
    with np.errstate(divide="ignore", invalid="ignore"):
        means = counts @ sums.totals / size[:, None]
    gram = (counts @ sums.products.reshape(len(sums.size), -1)).reshape(-1, n_judges, n_judges)
    floor = 1e-7 * np.sqrt(
        np.trace(gram, axis1=1, axis2=2)
    )  # what rounding of the products leaves of a constant
    gram -= size[:, None, None] * means[:, :, None] * means[:, None, :]
    usable = np.isfinite(gram).all(axis=(1, 2))
    values, vectors = np.linalg.eigh(np.where(usable[:, None, None], gram, 0.0))
    sigma = np.sqrt(np.maximum(values[:, :-3:-1], 0))
    left = align(vectors[:, :, :-3:-1], basis)[:, :, 0]
    left = np.where((usable & (sigma[:, 0] > floor))[:, None], left, np.nan)
    left = np.where(np.abs(left) < ZERO, 0.0, left)
    loadings = np.maximum(left, 0)
    norm = np.sqrt(np.maximum(np.einsum("bj,bjk,bk->b", left, gram, left), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = loadings.sum(axis=1)
        level = (loadings * means).sum(axis=1) / weight
        scale = norm * (loadings * left).sum(axis=1) / weight
    return Replicates(loadings, left, sigma, level, scale, means, norm)


def align(bases, reference) -> np.ndarray:
    """Rotate each basis onto the reference within its own subspace (orthogonal Procrustes).

    bases[b, judge, k], reference[judge, k]: returns bases @ R with R orthogonal, nearest to the reference in
    the least-squares sense (R = W Z' from the SVD of bases' reference; reflections allowed, so signs align
    too).

    >>> align(-np.eye(2)[None], np.eye(2)).round(3) + 0.0
    array([[[1., 0.],
            [0., 1.]]])
    """
    inner = np.einsum("bjk,jl->bkl", bases, reference)
    outer, _, other = np.linalg.svd(inner)
    return bases @ (outer @ other)


def resampled_group_means(
    replicates: Replicates, sums: AtomSums, counts, group_of, n_groups: int
) -> np.ndarray:
    """G^F of each replicate (A9): [b, group]; group_of[atom]. A group no atom of which was drawn is NaN.

    >>> ratings = [[5, 6, 8, 7], [4, 6, 9, 5]]
    >>> sums = atom_sums(ratings, range(4), 4)
    >>> found = resample(sums, np.ones((1, 4)), two_sided(ratings).basis)
    >>> means = resampled_group_means(found, sums, np.ones((1, 4)), [0, 0, 1, 1], 2)[0]
    >>> bool(np.allclose(means, group_means(two_sided(ratings).consensus, [0, 0, 1, 1], 2)))
    True
    """
    counts = np.asarray(counts, dtype=float)
    member = np.asarray(group_of)[:, None] == np.arange(n_groups)
    # the mean of F'u over a group's drawn items, from each atom's totals
    size = (counts * sums.size) @ member
    weighted = np.einsum(
        "ba,ag,aj,bj->bg", counts, member.astype(float), sums.totals, replicates.left, optimize=True
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = weighted / size - (replicates.left * replicates.means).sum(axis=1)[:, None]
        return replicates.level[:, None] + (replicates.scale / replicates.norm)[:, None] * centred


def sigma_null(ratings, rng: np.random.Generator, n_permutations: int, fill=7.0) -> np.ndarray:
    """sigma[permutation, 2] when each judge's ratings are shuffled across the items on their own (A.6).

    What is left after shuffling is what judges share by chance.

    >>> sigma_null([[5, 6, 8], [4, 6, 9]], np.random.default_rng(1), 3).shape
    (3, 2)
    """
    filled = fill_missing(ratings, fill)
    centred = filled - filled.mean(axis=1, keepdims=True)
    shuffled = rng.permuted(np.broadcast_to(centred, (n_permutations, *centred.shape)), axis=2)
    values = np.linalg.eigvalsh(shuffled @ shuffled.transpose(0, 2, 1))
    return np.sqrt(np.maximum(values[:, :-3:-1], 0))


def _check_axis(sigma1: float, filled: np.ndarray) -> None:
    if sigma1 <= ZERO * np.abs(filled).max() * np.sqrt(filled.size):
        raise SpectralError(
            "every judge gives every item the same rating: nothing is left after each judge's mean "
            "is taken out, so there is no axis to read"
        )
