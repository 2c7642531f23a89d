"""Quadratic forms and inner products of the vectors of many arms at once (compiled).

The vectors of the arms are the columns of an array ``(dim, arms)``, so that the compiler can use vector instructions.
Only the lower triangle of symmetric matrices is read.
"""

from fedbandit_envs.basics.compiled import inner_kernel


@inner_kernel
def add_shared_forms(matrix, vectors, count, product, form):
    """Adds the quadratic form x^T M x of each of the first ``count`` vectors x to ``form``, with one M for all.

    Args:
        matrix: M, symmetric, ``(dim, dim)``; the lower triangle is read.
        vectors: The vectors x as columns, ``(dim, arms)``.
        count: How many of the vectors are used, at most ``arms``.
        product: Scratch array, ``(arms,)``.
        form: The numbers that the forms are added to, ``(arms,)``.
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


@inner_kernel
def add_own_forms(matrices, vectors, product, form):
    """Adds the quadratic form x_k^T M_k x_k of every arm k to ``form``, where each arm has its own matrix M_k.

    Args:
        matrices: The symmetric matrices M_k, ``(dim, dim, arms)``; the lower triangles are read.
        vectors: The vectors x_k as columns, ``(dim, arms)``.
        product: Scratch array, ``(arms,)``.
        form: The numbers that the forms are added to, ``(arms,)``.
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


@inner_kernel
def add_own_products(weights, vectors, factor, total):
    """Adds factor <w_k, x_k> to ``total[k]`` for every arm k, where each arm has its own weights w_k.

    Args:
        weights: The weights w_k as columns, ``(dim, arms)``.
        vectors: The vectors x_k as columns, ``(dim, arms)``.
        factor: A number that multiplies all products.
        total: The numbers that the products are added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        w, x = weights[i], vectors[i]
        for k in range(vectors.shape[1]):
            total[k] += factor * w[k] * x[k]


@inner_kernel
def add_shared_products(weights, vectors, count, total):
    """Adds the inner product <w, x> of each of the first ``count`` vectors x to ``total``, with one w for all.

    Args:
        weights: The weights w, ``(dim,)``.
        vectors: The vectors x as columns, ``(dim, arms)``.
        count: How many of the vectors are used, at most ``arms``.
        total: The numbers that the products are added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        weight, x = weights[i], vectors[i]
        for k in range(count):
            total[k] += weight * x[k]
