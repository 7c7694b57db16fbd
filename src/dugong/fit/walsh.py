"""The products-to-joints system of the paper, B e = r, solved by a fast Walsh-Hadamard transform.

In: product probabilities ``rho(U) = P(product of the variables in U is +1)`` of variables that are -1 or
+1, for all sets U. Out: the joint law of the variables. B_t = (H_t + 11^T) / 2 is 2^t x 2^t and is never
built. (Paper, Lemma 1.)
"""

from __future__ import annotations

import numpy as np

from dugong.fit.tables import products_to_joints
from dugong.types import FloatArray


def joint_from_products(product_probs: FloatArray) -> FloatArray:
    """Solve B e = r.

    Parameters
    ----------
    product_probs : (2, ..., 2) array
        One axis per variable: index 1 if the variable is in U. The entry of the empty set is 1.

    Returns
    -------
    array of the same shape
        One axis per variable: index 0 for -1, index 1 for +1.
    """
    # 2 B e - (sum of e) = H e, and the first entry of r is the sum of e.
    r = np.asarray(product_probs, dtype=np.float64)
    return products_to_joints(2 * r - r.flat[0], r.ndim)
