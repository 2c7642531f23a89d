"""Quadratic forms and inner products of the vectors of many arms at once (compiled).

Vectors are columns, ``(dim, arms)``, so that the compiler uses vector instructions; of symmetric matrices only the
lower triangle is read.
"""

from fedbandit_envs.basics.compiled import kernel


@kernel
def add_shared_forms(matrix, vectors, count, product, form):
    """Adds x^T M x for the first ``count`` vectors, with one M for all of them.

    Args:
        matrix: M, symmetric, ``(dim, dim)``; the lower triangle is read.
        vectors: ``(dim, arms)``.
        count: How many vectors there are, at most ``arms``.
        product: Scratch, ``(arms,)``.
        form: Is added to, ``(arms,)``.
    """
    for i in range(matrix.shape[0]):
        x = vectors[i]
        for k in range(count):
            product[k] = matrix[i, i] * x[k]
        for h in range(i):
            weight = 2.0 * matrix[i, h]
            other = vectors[h]
            for k in range(count):
                product[k] += weight * other[k]
        for k in range(count):
            form[k] += product[k] * x[k]


@kernel
def add_own_forms(matrices, vectors, product, form):
    """Adds x_k^T M_k x_k for every arm k, each with an M of its own.

    Args:
        matrices: Symmetric, ``(dim, dim, arms)``; the lower triangles are read.
        vectors: ``(dim, arms)``.
        product: Scratch, ``(arms,)``.
        form: Is added to, ``(arms,)``.
    """
    dim, arms = vectors.shape
    for i in range(dim):
        x = vectors[i]
        diagonal = matrices[i, i]
        for k in range(arms):
            product[k] = 0.5 * diagonal[k] * x[k]
        for h in range(i):
            weight = matrices[i, h]
            other = vectors[h]
            for k in range(arms):
                product[k] += weight[k] * other[k]
        for k in range(arms):
            form[k] += 2.0 * product[k] * x[k]


@kernel
def add_own_products(weights, vectors, factor, total):
    """Adds factor <w_k, x_k> for every arm k.

    Args:
        weights: ``(dim, arms)``.
        vectors: ``(dim, arms)``.
        factor: A number.
        total: Is added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        w, x = weights[i], vectors[i]
        for k in range(vectors.shape[1]):
            total[k] += factor * w[k] * x[k]


@kernel
def add_shared_products(weights, vectors, count, total):
    """Adds <w, x> for the first ``count`` vectors.

    Args:
        weights: w, ``(dim,)``.
        vectors: ``(dim, arms)``.
        count: How many vectors there are, at most ``arms``.
        total: Is added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        weight, x = weights[i], vectors[i]
        for k in range(count):
            total[k] += weight * x[k]
