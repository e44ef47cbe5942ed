"""Results of the programs of `examples/sparse` by SciPy and NumPy, on tensors made here and on published ones.

`sparse_examples.py OUT [DATA]` writes inputs and expected results into the folder OUT, and prints a line of JSON for
each case: `file`, `entry`, `inputs` and `sizes` as on the command line, `expected` (a `.npy`), and `data`, the name of
the input. DATA is the folder of published data.
"""
import gzip

import json
import pathlib
import sys
import zipfile

import numpy as np
from scipy import io as scipy_io
from scipy import sparse
from scipy.sparse import csgraph

OUT, DATA = None, None
RANDOM = np.random.default_rng(1)
KEPT = {}


def keep(value):
    """Saves a tensor, each object once; returns the path of its file."""
    if id(value) not in KEPT:
        path = OUT / f"{len(KEPT)}{'.npz' if sparse.issparse(value) else '.npy'}"
        sparse.save_npz(path, value) if sparse.issparse(value) else np.save(path, value)
        # (The value is kept alive, so that no other object gets its id.)
        KEPT[id(value)] = path, value
    return str(KEPT[id(value)][0])


def case(data, program, expected, sizes=None, **inputs):
    file, entry = program.split(":")
    given = {k: keep(v) if isinstance(v, np.ndarray) or sparse.issparse(v) else str(v) for k, v in inputs.items()}
    answer = keep(np.asarray(expected))
    print(json.dumps({"file": f"sparse/{file}.ft", "entry": entry, "inputs": given, "sizes": sizes or {},
                      "expected": answer, "data": data}))


def sparse_case(data, program, expected, **inputs):
    """Adds a case with a sparse result: the expected rows are the indices of its elements and their values, but for
    elements that may have cancelled."""
    expected = sparse.csr_matrix(expected)
    expected.sort_indices()
    expected = expected.tocoo()
    kept = abs(expected.data) > 1e-9 * abs(expected.data).max(initial=0)
    triplets = np.stack([expected.row[kept], expected.col[kept], expected.data[kept]]).astype(np.float64)
    case(data, program, triplets, **inputs)


def results(data, a):
    """Adds cases of sparse results: sums and products with the matrix's own values in another order."""
    n, m = a.shape
    b = sparse.csr_matrix(a[::-1])
    sparse_case(data, "results:add", a + 2.5 * b, A=a, B=b, b=2.5)
    sparse_case(data, "results:positive", a.multiply(a > 0), A=a)
    sums = np.asarray(a.sum(axis=0)).ravel()
    kept = np.flatnonzero(abs(sums) > 1e-9 * abs(sums).max(initial=0))
    case(data, "results:column_sums", np.stack([kept, sums[kept]]), A=a)
    t = sparse.csr_matrix(a.T)
    if (np.diff(a.indptr)[t.indices]).sum() < 4_000_000:
        sparse_case(data, "results:product", t @ a, A=t, B=a)
        sparse_case(data, "results:by_columns", t @ a, A=t, B=a)
        sparse_case(data, "results:transposed", a.T, A=a)
    if n < 700:
        sparse_case(data, "results:inner", a @ t, A=a, B=t)
        sparse_case(data, "results:masked", b.multiply(a @ t @ a), M=b, A=sparse.csr_matrix(a @ t), B=a)


def products(data, a):
    n, m = a.shape
    x, b = RANDOM.random(m), RANDOM.random((m, 5))
    few = sparse.random_array((m,), density=0.1, random_state=RANDOM, format="coo")
    left = RANDOM.random((n, 5))
    case(data, "products:spmv", a @ x, A=a, x=x)
    case(data, "products:by_columns", a @ x, A=a, x=x)
    case(data, "products:spmm", a @ b, A=a, B=b)
    sampled = a.tocoo()
    terms = sampled.data * np.einsum("ek,ek->e", left[sampled.row], b[sampled.col])
    case(data, "products:sddmm", np.bincount(sampled.row, terms, n), S=a, A=left, B=b)
    case(data, "tensors:spmspv", a @ few.toarray(), A=a, x=few)


def shapes(data, a):
    """Adds cases of a square matrix: products with its triangles and symmetric sum, a solve, and a factorisation."""
    n = a.shape[0]
    x, b = RANDOM.random(n), RANDOM.random((n, 3))
    lower, upper = sparse.csr_matrix(sparse.tril(a)), sparse.csr_matrix(sparse.triu(a))
    both = sparse.csr_matrix(a + a.T)
    case(data, "shapes:lower", lower @ x, L=lower, x=x)
    case(data, "shapes:upper", upper @ x, U=upper, x=x)
    case(data, "shapes:symmetric_product", both @ b, A=both, X=b)
    case(data, "shapes:energy", x @ (both @ x), A=both, x=x)
    case(data, "shapes:trace", both.multiply(lower).sum(), A=both, L=lower)
    # Well conditioned: the elements of a row off the diagonal add up to at most half.
    strict = sparse.tril(a, -1)
    row = np.asarray(abs(strict).sum(axis=1)).ravel()
    unit = sparse.csr_matrix(sparse.diags(0.5 / np.where(row > 0, row, 1)) @ strict + sparse.eye(n))
    case(data, "shapes:solve", sparse.linalg.spsolve_triangular(unit, x, lower=True), L=unit, b=x)
    if n < 600:
        case(data, "shapes:cholesky", (lower @ lower.T).toarray(), L=lower)


def banded(data, a):
    """Adds cases of a band, unless it is so wide that it is a dense matrix."""
    a = sparse.csr_matrix(a)
    width = sum(a.indices[p:q].max() - a.indices[p:q].min() + 1 for p, q in zip(a.indptr, a.indptr[1:]) if q > p)
    if width > 4_000_000:
        return
    x = RANDOM.random(a.shape[1])
    case(data, "shapes:banded", a @ x, A=a, x=x)
    if a.shape[0] == a.shape[1] < 1200:
        case(data, "shapes:banded_product", (a @ a).toarray(), A=a, B=a)


def graphs(data, a):
    """Adds cases of an undirected graph, given as a matrix of ones."""
    n = a.shape[0]
    for way in ("triangles", "triangles_leapfrog", "triangles_laid_out"):
        case(data, f"graphs:{way}", (a @ a).multiply(a).sum() / 6, A=a)
    case(data, "results:triangles", (a @ a).multiply(a).sum() / 6, A=a)
    # Edges in random directions: one way, both ways, or none.
    one_way = sparse.coo_matrix(a)
    kept = (one_way.row < one_way.col) ^ (RANDOM.random(one_way.nnz) < 0.5)
    one_way = sparse.csr_matrix((np.ones(kept.sum()), (one_way.row[kept], one_way.col[kept])), a.shape)
    expected = (one_way @ one_way).multiply(one_way.T).sum() / 3
    case(data, "graphs:triangles_transposed", expected, A=one_way, T=one_way)
    case(data, "graphs:triangles_searched", expected, A=one_way)
    hops = csgraph.shortest_path(one_way, unweighted=True, indices=0)
    reached = hops[np.isfinite(hops)].max()
    case(data, "graphs:breadth_first", np.where(np.isfinite(hops), hops, -1).astype(np.int64),
         A=one_way.astype(bool), source=0, rounds=int(reached) + 1)
    roads = one_way.copy()
    roads.data = 0.1 + RANDOM.random(roads.nnz)
    # Enough rounds for paths of many short edges.
    case(data, "graphs:shortest_paths", csgraph.dijkstra(roads, indices=0), A=roads, source=0, rounds=4 * int(reached))
    rank, degree = np.full(n, 1 / n), np.asarray(one_way.sum(axis=1)).ravel()
    for _ in range(20):
        rank = 0.15 / n + 0.85 * (one_way.T @ (rank / np.where(degree > 0, degree, 1)))
    case(data, "graphs:pagerank", rank, A=one_way, rounds=20)


def tensors(data, path, indices, elements, shape):
    b, c = RANDOM.random((shape[1], 4)), RANDOM.random((shape[2], 4))
    expected = np.zeros((shape[0], 4))
    np.add.at(expected, indices[:, 0], elements[:, None] * b[indices[:, 1]] * c[indices[:, 2]])
    # The file's largest coordinates may be smaller than the sizes.
    case(data, "tensors:mttkrp", expected, A=path, B=b, C=c, sizes={"n": int(shape[0])})


def pictures(data, a):
    """Adds cases of pictures, which are the rows of a matrix."""
    a = a.astype(np.float64)
    square = (a * a).sum(axis=1)
    expected = np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * a @ a.T, 0))
    for stored in ("vbl", "rle", "list"):
        case(data, f"pictures:distances_{stored}", expected, A=a)


def convolution(data, mask, picture, width):
    """Adds the case of a filter at the pixels of a mask."""
    weights = RANDOM.random((width, width)).astype(np.float32)
    padded = np.pad(picture.astype(np.float64), width // 2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (width, width))[: picture.shape[0], : picture.shape[1]]
    expected = np.einsum("ijpq,pq->ij", windows, weights) * mask.toarray()
    case(data, "layers:convolution", expected.astype(np.float32), M=mask, x=picture, w=weights)


def network(data, stack):
    """Adds the case of layers of sparse weights, one after the other."""
    d = stack.shape[1]
    bias, x = RANDOM.random(len(stack)) - 0.6, RANDOM.random((d, 7))
    y = x
    for weights, b in zip(stack, bias):
        y = np.clip(weights @ y + b, 0, 32)
    indices = np.argwhere(stack != 0)
    file = OUT / f"network{len(KEPT)}.tns"
    lines = [" ".join(map(str, (at + 1).tolist())) + f" {stack[tuple(at)]!r}\n" for at in indices]
    file.write_text("".join(lines).replace("np.float64(", "").replace(")", ""))
    case(data, "layers:network", y, W=file, bias=bias, x=x, sizes={"d": d, "layers": len(stack)})


def softmax_rows(mask, scores):
    """Returns the softmax over the masked elements of each row; rows without any are 0."""
    where = mask.toarray() != 0
    shifted = np.where(where, scores, -np.inf)
    peak = np.where(where.any(axis=1), shifted.max(axis=1, initial=-np.inf), 0)
    weights = np.exp(shifted - peak[:, None])
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def layers(data, a):
    """Adds cases of network layers on a graph, given as a matrix of ones."""
    n = a.shape[0]
    q, k, v = RANDOM.standard_normal((3, n, 4))
    case(data, "layers:attention", softmax_rows(a, q @ k.T) @ v, M=a, q=q, k=k, v=v)
    x, w = RANDOM.standard_normal((n, 6)), RANDOM.standard_normal((6, 3))
    source, target = RANDOM.standard_normal((2, 3))
    h = x @ w
    scores = (h @ target)[:, None] + h @ source
    expected = softmax_rows(a, np.where(scores > 0, scores, 0.2 * scores)) @ h
    case(data, "layers:graph_attention", expected, A=a, x=x, w=w, a_src=source, a_dst=target)
    near, (place, mass) = a.tocoo(), (RANDOM.standard_normal((n, 3)), RANDOM.random(n))
    apart = place[near.row] - place[near.col]
    distance = np.sqrt((apart**2).sum(axis=1) + 0.01)
    both = mass[near.row] * mass[near.col]
    case(data, "layers:energy", -(both / distance).sum(), N=a, x=place, mass=mass)
    pull, pulls = -apart * (both / distance**3)[:, None], np.zeros((n, 3))
    np.add.at(pulls, near.row, pull)
    np.add.at(pulls, near.col, -pull)
    case(data, "layers:forces", pulls, N=a, x=place, mass=mass)


def blended(data, b, c, alpha):
    expected = np.round(alpha * b.astype(np.float64) + (1 - alpha) * c.astype(np.float64)).astype(np.uint8)
    case(data, "pictures:blend", expected, B=b, C=c, alpha=alpha)


def made():
    def some(n, m, density):
        return sparse.random(n, m, density, "csr", random_state=RANDOM)

    products("made", some(60, 80, 0.1))
    results("made", some(60, 80, 0.1))
    shapes("made", some(50, 50, 0.1))
    banded("made", sparse.csr_matrix(sparse.diags([RANDOM.random(70 - abs(k)) for k in range(-3, 3)], range(-3, 3))))
    graph = some(80, 80, 0.1)
    graph = sparse.csr_matrix(((graph + graph.T) != 0).astype(np.float64))
    graph.setdiag(0)
    graph.eliminate_zeros()
    graphs("made", graph)
    layers("made", graph)
    picture = RANDOM.random((31, 40)).astype(np.float32)
    for width in (1, 4, 11):
        convolution("made", some(31, 40, 0.1).astype(np.float32), picture, width)
    network("made", np.where(RANDOM.random((3, 20, 20)) < 0.2, RANDOM.standard_normal((3, 20, 20)), 0.0))
    indices = np.unique(RANDOM.integers(0, 12, (200, 3)), axis=0)
    elements = RANDOM.random(len(indices))
    file = OUT / "made.tns"
    file.write_text("".join(f"{i + 1} {j + 1} {k + 1} {v!r}\n" for (i, j, k), v in zip(indices.tolist(), elements.tolist())))
    tensors("made", file, indices, elements, indices.max(axis=0) + 1)
    far = np.add.outer(np.arange(40) - 20, 1j * (np.arange(50) - 25))
    rings = [((abs(far) // w) % 2 * 200).astype(np.uint8) for w in (3, 5, 8)]
    pictures("rings", np.stack([r.ravel() for r in rings]))
    blended("rings", rings[0], rings[1], 0.25)


def published():
    for path in sorted((DATA / "matrices").glob("*.mtx")):
        a = scipy_io.mmread(path)
        if not sparse.issparse(a) or np.iscomplexobj(a):
            continue
        a = sparse.csr_matrix(a.astype(np.float64))
        products(path.name, a)
        results(path.name, a)
        banded(path.name, a)
        if a.shape[0] == a.shape[1] < 3000:
            shapes(path.name, a)
    for path in sorted((DATA / "graphs").iterdir()):
        if path.name in ("karate.mtx", "cora_edges.mtx"):
            graph = sparse.csr_matrix(scipy_io.mmread(path)).astype(np.float64)
            graphs(path.name, graph)
            layers(path.name, graph)
        elif path.name.startswith("ca-"):
            u, v = np.unique(np.loadtxt(path, dtype=np.int64), return_inverse=True)[1].reshape(-1, 2).T
            graphs(path.name, undirected(u, v))
        elif path.name == "facebook-combined.csv":
            u, v = np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1, usecols=(0, 1)).T - 1
            graphs(path.name, undirected(u, v))
    for name in ("openflights_routes", "parti_3D_12031"):
        path = DATA / "tensors" / f"{name}.tns"
        tensors(path.name, path, *frostt(path))
    pictures("MNIST", digits(60))
    # The filter at pixels with ink.
    ink = digits(60).reshape(60 * 28, 28).astype(np.float32)
    convolution("MNIST", sparse.csr_matrix((ink > 0).astype(np.float32)), ink, 11)
    drawings = drawn(60)
    pictures("Omniglot", np.stack([d.ravel() for d in drawings]))
    blended("Omniglot", drawings[0], drawings[25], 0.3)


def frostt(path):
    """Reads a tensor of three dimensions: indices from 0, elements and shape."""
    lines = [line.split() for line in path.read_text().splitlines() if line and line[0] != "#"]
    rows = np.array([line for line in lines if len(line) == 4], dtype=np.float64)
    indices = rows[:, :3].astype(np.int64) - 1
    heads = [line for line in lines if len(line) == 3]
    shape = [int(s) for s in heads[0]] if heads else indices.max(axis=0) + 1
    return indices, rows[:, 3], [int(s) for s in shape]


def digits(count):
    """Returns the first images of MNIST, a row each."""
    packed = gzip.open(DATA / "images/mnist_t10k-images-idx3-ubyte.gz").read()
    return np.frombuffer(packed, np.uint8, offset=16).reshape(-1, 784)[:count]


def undirected(u, v):
    """Returns the matrix of ones of a graph, without loops and duplicates."""
    n = int(max(u.max(), v.max())) + 1
    apart = u != v
    a = sparse.csr_matrix((np.ones(apart.sum()), (u[apart], v[apart])), (n, n))
    a = sparse.csr_matrix(((a + a.T) != 0).astype(np.float64))
    a.sort_indices()
    return a


def drawn(count):
    """Returns line drawings: ink is 255, paper 0."""
    archive = zipfile.ZipFile(DATA / "images/omniglot_images_background_small1.zip")
    names = sorted(n for n in archive.namelist() if n.endswith(".png") and "MACOSX" not in n)
    step = len(names) // count
    return [255 - png(archive.read(n)) for n in names[::step][:count]]


def png(data):
    """Decodes a picture of one bit per pixel, in one channel: as much of PNG as these files need."""
    import struct
    import zlib

    at, packed, width, height = 8, b"", 0, 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, color, interlaced) == (1, 0, 0)
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    stride = (width + 7) // 8
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, stride + 1)
    assert (rows[:, 0] == 0).all(), "rows are not filtered"
    return np.unpackbits(rows[:, 1:], axis=1)[:, :width] * np.uint8(255)


if __name__ == "__main__":
    OUT = pathlib.Path(sys.argv[1])
    made()
    if len(sys.argv) > 2:
        DATA = pathlib.Path(sys.argv[2])
        published()
