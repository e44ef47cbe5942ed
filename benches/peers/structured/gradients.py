"""Gradients of sparse layers, given the result's cotangent, against PyTorch with sparse tensors, gathered rows, masks.

Taffeta computes the gradients alone, PyTorch the result too.
"""

import math

import numpy as np
import scipy.sparse as sp

from . import matrices
from .peers import torch_, torch_matrix
from .stored import csr
from .workload import Bar, Workload, entry

N, WIDTH = 2048, 64
DENSITIES = (0.001, 0.01, 0.05)


AHEAD = (Bar(ratio=1.0),)


def given(density):
    """Returns a sparse matrix whose rows all have an element, the rows of its elements, and four thin matrices."""
    rng = np.random.default_rng(0)
    s = matrices.plain(sp.random(N, N, density, random_state=rng) + sp.eye(N), np.float32)
    thin = [rng.standard_normal((N, WIDTH), dtype=np.float32) / math.sqrt(WIDTH) for _ in range(4)]
    return s, np.repeat(np.arange(N), np.diff(s.indptr)), thin


def joined(arrays):
    """Joins several gradients in one array, each divided by its own largest element."""
    flat = [np.asarray(a, np.float64).ravel() for a in arrays]
    return np.concatenate([a / np.abs(a).max() for a in flat])


def taffeta(work, program, arguments, shapes, **sizes):
    def prepare():
        results = [np.empty(shape, np.float32) for shape in shapes]
        return entry(f"gradients.ft:{program}", n=N, **sizes).bind(arguments, results), lambda: joined(results)

    return work.add("taffeta", prepare)


def torch_gradients(forward, leaves, seed=None, tell=lambda g: g.numpy()):
    """Prepares a system: `forward` differentiated with respect to `leaves`."""
    torch = torch_()
    for leaf in leaves:
        leaf.requires_grad_()

    def call():
        with torch.enable_grad():
            return torch.autograd.grad(forward(*leaves), leaves, seed)

    return call, lambda: joined([tell(g) for g in call()])


def spmm(name, density):
    """Makes SpMM's gradients with respect to both operands: sampled products, and a product with the transpose."""
    s, rows, (b, seed, *_) = given(density)
    work = Workload(name, AHEAD, 1e-4)
    taffeta(work, "spmm_back", [csr(s), b, seed], [s.nnz, b.shape], m=N, k=WIDTH)
    torch = torch_()
    tensor = torch.from_numpy
    at = tensor(rows), tensor(s.indices.astype(np.int64))

    def of_dense(g):
        return (g[at] if g.shape == s.shape else g).numpy()

    def sparse(matrix):
        stored = lambda g: (
            (g.coalesce() if g.layout == torch.sparse_coo else g).values() if g.layout != torch.strided else g
        )
        return torch_gradients(torch.sparse.mm, [matrix, tensor(b.copy())], tensor(seed), lambda g: stored(g).numpy())

    work.add("torch.sparse, csr", lambda: sparse(torch_matrix(s)))
    work.add("torch.sparse, coo", lambda: sparse(torch_matrix(s).to_sparse_coo().coalesce()))

    def dense():
        full = tensor(s.toarray())
        mask = full != 0
        return torch_gradients(lambda a, b: (a * mask) @ b, [full, tensor(b.copy())], tensor(seed), of_dense)

    work.add("torch, dense mask", dense)

    def gathered():
        forward = lambda v, b: torch.zeros(N, WIDTH).index_add(0, at[0], v[:, None] * b[at[1]])
        return torch_gradients(forward, [tensor(s.data.copy()), tensor(b.copy())], tensor(seed))

    return work.add("torch, gathered", gathered)


def factorisation(name, density):
    """Makes the gradients of squared residuals of two thin matrices at the known elements, by sampled products."""
    s, rows, (a, b, *_) = given(density)
    work = Workload(name, AHEAD, 1e-4)
    taffeta(work, "factorisation_back", [csr(s), a, b], [a.shape, b.shape], m=N, k=WIDTH)
    torch = torch_()
    tensor = torch.from_numpy
    at = tensor(rows), tensor(s.indices.astype(np.int64))
    leaves = lambda: [tensor(a.copy()), tensor(b.copy())]

    def sparse():
        stored, values = torch_matrix(s), tensor(s.data)
        forward = lambda a, b: (torch.sparse.sampled_addmm(stored, a, b.t(), beta=0.0).values() - values).square().sum()
        return torch_gradients(forward, leaves())

    work.add("torch.sparse, csr", sparse)

    def dense():
        full = tensor(s.toarray())
        mask = full != 0
        return torch_gradients(lambda a, b: ((full - a @ b.t()) * mask).square().sum(), leaves())

    work.add("torch, dense mask", dense)

    def gathered():
        values = tensor(s.data)
        return torch_gradients(lambda a, b: (values - (a[at[0]] * b[at[1]]).sum(1)).square().sum(), leaves())

    return work.add("torch, gathered", gathered)


def attention(name, density):
    """Makes masked attention, forward and backward."""
    s, rows, (q, k, v, seed) = given(density)
    s.data[:] = 1
    work = Workload(name, AHEAD, 1e-4)
    taffeta(work, "attention_back", [csr(s), q, k, v, seed], [q.shape] * 3, d=WIDTH)
    torch = torch_()
    tensor = torch.from_numpy
    leaves = lambda: [tensor(x.copy()) for x in (q, k, v)]
    cotangent = tensor(seed)

    def dense():
        mask = tensor(s.toarray() != 0)
        forward = lambda q, k, v: torch.softmax((q @ k.t()).masked_fill(~mask, -torch.inf), 1) @ v
        return torch_gradients(forward, leaves(), cotangent)

    work.add("torch, dense mask", dense)

    def fused():
        mask = tensor(s.toarray() != 0)
        attend = torch.nn.functional.scaled_dot_product_attention
        forward = lambda q, k, v: attend(q[None, None], k[None, None], v[None, None], mask, scale=1.0)[0, 0]
        return torch_gradients(forward, leaves(), cotangent)

    work.add("torch, fused dense", fused)

    def sparse():
        """Sums rows by products with ones: there is no softmax of CSR, and that of COO is far slower."""
        stored, ones = torch_matrix(s), torch.ones(N, 1)

        def forward(q, k, v):
            score = torch.sparse.sampled_addmm(stored, q, k.t(), beta=0.0)
            weight = torch.sparse_csr_tensor(score.crow_indices(), score.col_indices(), score.values().exp(), s.shape)
            return (weight @ v) / (weight @ ones)

        return torch_gradients(forward, leaves(), cotangent)

    work.add("torch.sparse, csr", sparse)

    def softmax_coo():
        stored = torch_matrix(s)

        def forward(q, k, v):
            score = torch.sparse.sampled_addmm(stored, q, k.t(), beta=0.0)
            return torch.sparse.mm(torch.sparse.softmax(score.to_sparse_coo(), 1), v)

        return torch_gradients(forward, leaves(), cotangent)

    work.add("torch.sparse, coo", softmax_coo)

    def gathered():
        at = tensor(rows), tensor(s.indices.astype(np.int64))

        def forward(q, k, v):
            score = (q[at[0]] * k[at[1]]).sum(1)
            peak = torch.full((N,), -torch.inf).index_reduce(0, at[0], score.detach(), "amax")
            weight = torch.exp(score - peak[at[0]])
            total = torch.zeros(N).index_add(0, at[0], weight)
            return torch.zeros(N, WIDTH).index_add(0, at[0], (weight / total[at[0]])[:, None] * v[at[1]])

        return torch_gradients(forward, leaves(), cotangent)

    return work.add("torch, gathered", gathered)


def workloads():
    for kind, race in (("SpMM", spmm), ("factorisation", factorisation), ("attention", attention)):
        for density in DENSITIES:
            name = f"gradient of {kind}, {N}, {WIDTH} columns, {100 * density:g} %"
            yield name, lambda name, race=race, density=density: race(name, density)
