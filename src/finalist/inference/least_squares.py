"""The least-squares estimate and what it says.

`estimate` solves for the parameter in span coordinates, by ordinary least squares (Soare 2014,
Sect. 2: theta_hat = A^-1 b), weighted where the noise differs between arms, or with a ridge
(Prop. 2). `Estimate` answers what the data say: means, widths, residual variance and a test of
linearity.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from finalist.arms import Arms
from finalist.errors import EstimateError
from finalist.inference.information import Information, information
from finalist.inference.statistics import Statistics
from finalist.shapes import Float, Num
from finalist.text import counted

#: Residuals below this part of the fitted values are rounding, not lack of fit.
ROUNDING = 64 * np.finfo(float).eps


@dataclass(frozen=True)
class LackOfFit:
    """The F test of linearity: residuals between arms against scatter within arms.

    Attributes
    ----------
    f : float
        Ratio of the two mean squares; infinite when repeated rewards do not scatter at all.
    df_fit, df_pure : int
        Distinct pulled arms minus their rank; pulls minus distinct pulled arms.
    ss_fit, ss_pure : float
        The two sums of squares.
    """

    f: float
    df_fit: int
    df_pure: int
    ss_fit: float
    ss_pure: float

    @property
    def p_value(self) -> float:
        """Probability of a larger ratio when the model is linear and the noise Gaussian."""
        from scipy.special import fdtrc

        return float(fdtrc(self.df_fit, self.df_pure, self.f))


@dataclass(frozen=True, eq=False)
class Estimate:
    """What some rewards say about the parameter.

    Directions are in span coordinates (`Arms.to_span`). One that the pulled arms cannot estimate
    has gap NaN and width infinity, so that no comparison with them is true.

    Attributes
    ----------
    phi : (r,) array
        Estimated parameter in span coordinates: the reward of an arm is z'phi.
    statistics : Statistics
        The data, as they were.
    information : Information
        Factor of A, or of A + ridge * I.
    penalty : (p, r) array
        Rows of which the ridge is the sum of squares; none for ordinary least squares.
    precisions : (K,) array or None
        1 / sigma^2 of each arm, by which its pulls count; then sigma is 1 everywhere below. None
        where all pulls count the same.
    """

    arms: Arms
    statistics: Statistics
    ridge: float
    phi: Float[np.ndarray, " r"]
    information: Information
    penalty: Float[np.ndarray, "p r"]
    precisions: Float[np.ndarray, " K"] | None = None

    @property
    def dimension(self) -> int:
        """The rank that the information has when all that can be estimated is."""
        return self.arms.rank

    def means(self) -> Float[np.ndarray, " K"]:
        """Return the estimated reward of each arm, NaN where the data say nothing."""
        return self.gaps(self.arms.coordinates)

    def gaps(self, directions: Float[np.ndarray, "M r"]) -> Float[np.ndarray, " M"]:
        """Return y'phi for each direction."""
        return np.where(self.information.spans(directions), directions @ self.phi, np.nan)

    def widths(self, directions: Float[np.ndarray, "M r"]) -> Float[np.ndarray, " M"]:
        """Return ||y||_{A^-1} = sqrt(y'A^-1 y); times sigma it is the standard error of a gap."""
        return np.asarray(np.sqrt(self.information.variances(directions)))

    @property
    def degrees_of_freedom(self) -> int:
        """Pulls minus the rank of the pulled arms."""
        self._require_ordinary()
        return self.statistics.pulls - self.information.rank

    @property
    def residual_variance(self) -> float:
        """Unbiased estimate of sigma^2 from the residuals."""
        df = self.degrees_of_freedom
        if df == 0:
            pulls = counted(self.statistics.pulls, "pull")
            raise EstimateError(
                f"{pulls} of arms of rank {self.information.rank} leave nothing to estimate the "
                "variance from; add pulls."
            )
        return (self._pure_squares() + self._fit_squares()) / df

    def lack_of_fit(self) -> LackOfFit | None:
        """Test whether the means of the arms are linear in their features.

        Returns
        -------
        LackOfFit or None
            None when no arm was pulled twice, or the pulled arms fit any means.
        """
        self._require_ordinary()
        distinct = int(np.count_nonzero(self.statistics.count))
        df_fit = distinct - self.information.rank
        df_pure = self.statistics.pulls - distinct
        if df_fit == 0 or df_pure == 0:
            return None
        return self._test_of_fit(self._fit_squares(), df_fit, self._pure_squares(), df_pure)

    def _test_of_fit(self, ss_fit: float, df_fit: int, ss_pure: float, df_pure: int) -> LackOfFit:
        n, mean = self._weights(), self.statistics.mean
        rounding = float(n.sum() * (ROUNDING * np.max(np.abs(mean))) ** 2)
        f = _ratio(ss_fit, df_fit, ss_pure, df_pure, rounding)
        return LackOfFit(f, df_fit, df_pure, ss_fit, ss_pure)

    def log_det_ratio(self) -> float:
        """Return log(det(A + ridge I) / det(ridge I)), the input of `determinant_radius`."""
        if self.ridge == 0:
            raise EstimateError("det(ridge I) is 0 without a ridge; use estimate(..., ridge=1.0).")
        # On the complement of the arms' span both determinants have the same factors.
        log_root = float(np.linalg.slogdet(self.information.root)[1])
        log_penalty = float(np.linalg.slogdet(self.penalty)[1])
        return 2 * (log_root - log_penalty) - self.arms.rank * math.log(self.ridge)

    def _weights(self) -> Float[np.ndarray, " K"]:
        return weights_of(self.statistics.count, self.precisions)

    def _fit_squares(self) -> float:
        n, mean = self._weights(), self.statistics.mean
        pulled = n > 0
        residual = mean[pulled] - self.arms.coordinates[pulled] @ self.phi
        return float(n[pulled] @ residual**2)

    def _pure_squares(self) -> float:
        m2 = self.statistics.m2
        pure = float(m2.sum() if self.precisions is None else (m2 * self.precisions).sum())
        if np.isnan(pure):
            raise EstimateError(
                "the scatter within arms is unknown because a batch was added as sums only; "
                "give add_batch(count, total, squares)."
            )
        return pure

    def _require_ordinary(self) -> None:
        if self.ridge > 0:
            raise EstimateError(
                f"residuals of a ridge fit (ridge={self.ridge}) are biased; use "
                "estimate(arms, statistics) without ridge."
            )


def weights_of(
    count: Num[np.ndarray, " K"], precisions: Float[np.ndarray, " K"] | None
) -> Float[np.ndarray, " K"]:
    """Return what the pulls of each arm count in least squares."""
    n = count.astype(float)
    return n if precisions is None else n * precisions


def weighted_rows(
    Z: Float[np.ndarray, "K r"], precisions: Float[np.ndarray, " K"] | None
) -> Float[np.ndarray, "K r"]:
    """Return rows that count in least squares, one pull of each, without weights."""
    return Z if precisions is None else Z * np.sqrt(precisions)[:, None]


def estimate(
    arms: Arms,
    statistics: Statistics,
    ridge: float = 0.0,
    known: Information | None = None,
    precisions: Float[np.ndarray, " K"] | None = None,
) -> Estimate:
    """Estimate the parameter by least squares.

    Parameters
    ----------
    arms : Arms
        K arms.
    statistics : Statistics
        Of the same K arms; the estimate keeps a copy.
    ridge : float, default 0.0
        eta of Soare 2014, Prop. 2: the penalty eta ||theta||^2, theta in feature space.
    known : Information, optional
        That of the counts, where it has been computed already; not with a ridge.
    precisions : (K,) array, optional
        1 / sigma^2 of each arm, where it differs (`Problem.precisions`); not with a ridge.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> from finalist.arms import Arms
    >>> s = Statistics.empty(3)
    >>> s.add_many([0, 0, 1], [1.0, 3.0, 5.0])
    >>> e = estimate(Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), s)
    >>> e.means().round(12)
    array([2., 5., 7.])
    >>> e.residual_variance, e.degrees_of_freedom
    (2.0, 1)
    """
    if not (np.isfinite(ridge) and ridge >= 0):
        raise EstimateError(f"ridge is {ridge}; it is a finite number, 0 or more.")
    if len(statistics.count) != len(arms):
        raise EstimateError(
            f"the statistics are of {len(statistics.count)} arms and there are {len(arms)}."
        )
    kept = statistics.copy()
    Z, n = arms.coordinates, weights_of(kept.count, precisions)
    if ridge > 0:
        P = _penalty(arms)
        info = information(np.vstack([Z, P]), np.append(n, np.full(len(P), ridge)))
    else:
        P, info = np.zeros((0, arms.rank)), known or information(Z, n)
    phi = info.solve(Z.T @ (n * kept.mean))
    # Twice again on the residuals (Bjorck's corrected seminormal equations): the digits that
    # squaring the condition number loses come back. A ridge has residuals of its own.
    for _ in range(2 if ridge == 0 else 0):
        phi = phi + info.solve(Z.T @ (n * (kept.mean - Z @ phi)))
    for array in (kept.count, kept.mean, kept.m2, kept.carry, phi):
        array.setflags(write=False)
    return Estimate(arms, kept, float(ridge), phi, info, P, precisions)


def _penalty(arms: Arms) -> Float[np.ndarray, "r r"]:
    """Return rows P with ||P phi|| = ||theta||, the ridge in span coordinates.

    Features are X = Z B and phi = B theta, so ||theta||^2 = phi'(B B')^-1 phi for theta in the
    span; with B' = QR, P = R'^-1. Heavy rows first and column pivoting keep the digits of
    features of very different size (Cox and Higham 1998).
    """
    r = arms.rank
    rows = np.array([arms.parameter_to_span(e) for e in np.eye(arms.features.shape[1])])
    order = np.argsort(-np.abs(rows).max(axis=1, initial=0.0), kind="stable")
    upper, columns = qr(rows[order], mode="r", pivoting=True, check_finite=False)
    P = np.empty((r, r))
    P[:, columns] = solve_triangular(upper[:r], np.eye(r), trans="T", check_finite=False)
    return P


def _ratio(ss_fit: float, df_fit: int, ss_pure: float, df_pure: int, rounding: float) -> float:
    """Return F; sums below the rounding error count as zero."""
    if ss_fit <= rounding:
        return 0.0
    if ss_pure <= rounding:
        return float("inf")
    return (ss_fit / df_fit) / (ss_pure / df_pure)
