"""Workloads of `workloads.py`, forward and backward: gradients, given a cotangent that is the same for all.

Every system takes the inputs and the cotangent and returns the gradients. JAX and Taffeta may omit from the forward
pass whatever no gradient needs; PyTorch computes it all. `tape=auto`, `tape=all` and `tape=none` keep Taffeta's own
choice for the backward pass, everything, and nothing: without a schedule, or with `race.py --schedule auto` under the
rules.
"""

import os
import re
import shutil
import tempfile

import numpy as np

from workloads import (
    EXAMPLES,
    CircularDifference,
    GraphAttention,
    Longformer,
    MeshConvolution,
    THREADS,
    SoftRasteriser,
    timed,
    taffeta,
)


class Backward:
    """Backward pass of a workload of the forward pass, which is mixed in after this class.

    `wrt` lists the inputs that get gradients.
    """

    systems = ["taffeta", "tape=auto", "tape=all", "tape=none", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("frameworks", 1.0)}

    def inputs(self):
        """Returns the forward pass's inputs, then the cotangent."""
        inputs = super().inputs()
        rng = np.random.default_rng(1)
        return inputs + [rng.standard_normal(self.result(*inputs), dtype=np.float32)]

    def result(self, first, *rest):
        """Returns the shape of the forward pass's result."""
        return first.shape

    def taffeta(self, *arrays, path=None, schedule="backward"):
        results = [np.empty_like(arrays[k]) for k in self.wrt]
        example, sizes, statics = self.program()
        return timed(taffeta(path or example, "back", self.arguments(*arrays), results, schedule, sizes, statics), results)

    def arguments(self, *arrays):
        return list(arrays)

    schedules = ["tape=auto", "tape=all", "tape=none"]

    def scheduled(self, system, *arrays):
        """Starts the example's entry with another tape."""
        folder, name = os.path.split(os.path.join(EXAMPLES, self.program()[0]))
        path = os.path.join(shutil.copytree(folder, os.path.join(tempfile.mkdtemp(prefix="taffeta-peers-"), "program")), name)
        with open(path) as file:
            text = file.read()
        tape = system.removeprefix("tape=")
        text, count = re.subn(r"(?m)^back = vjp\((\w+, wrt=\[.*?\]).*\)$", rf'back = vjp(\1, tape="{tape}")', text)
        # Its own schedule may name loops that do not exist with this tape.
        text = re.sub(r"(?ms)^@schedule\(back\)\ndef .*?(?=^\S|\Z)", "", text)
        assert count == 1, f"{name} has no such gradient"
        with open(path, "w") as file:
            file.write(text)
        rules = os.environ.get("TAFFETA_RACE_SCHEDULE") == "auto"
        return self.taffeta(*arrays, path=path, schedule="auto" if rules else None)

    def torch(self, *arrays):
        return super().torch(*arrays[:-1])

    def jax(self, *arrays):
        return super().jax(*arrays[:-1])

    def differentiated(self, system, f, args, cotangent):
        """Starts a peer: forward, then backward."""
        return (jax_gradients if system == "jax" else torch_gradients)(f, args, cotangent, self.wrt, system == "torch.compile")


def torch_gradients(f, args, cotangent, wrt, compiled):
    import torch

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(True)
    args, cotangent = [torch.from_numpy(a) for a in args], torch.from_numpy(cotangent)
    leaves = [args[k].requires_grad_() for k in wrt]
    if compiled:
        f = torch.compile(f, dynamic=False)
    call = lambda: torch.autograd.grad(f(*args), leaves, cotangent)
    return timed(call, lambda: [g.numpy() for g in call()])


def jax_gradients(f, args, cotangent, wrt, _):
    import jax
    import jax.numpy as jnp

    args, cotangent = [jnp.asarray(a) for a in args], jnp.asarray(cotangent)

    @jax.jit
    def gradients(args, cotangent):
        def of(*some):
            given = list(args)
            for k, a in zip(wrt, some):
                given[k] = a
            return f(*given)

        return jax.vjp(of, *[args[k] for k in wrt])[1](cotangent)

    call = lambda: jax.block_until_ready(gradients(args, cotangent))
    return timed(call, lambda: [np.asarray(g) for g in call()])


class CircularDifferenceBack(Backward, CircularDifference):
    name, wrt = "circdiff-back", [0]
    flops, bytes = 3 * CircularDifference.flops, 4 * (3 * 10240 * 64 + 3 * 10240)

    def program(self):
        return "subdivnet/circular_diff.ft", {"n_faces": self.n, "feats": self.features}, {}


class MeshConvolutionBack(Backward, MeshConvolution):
    name, wrt = "meshconv-back", [0, 2, 3, 4, 5]
    # The gradients do not need the products of the forward pass.
    flops, bytes = 2 * MeshConvolution.flops, 4 * (3 * 10240 * 64 + 3 * 10240)

    def program(self):
        return "subdivnet/mesh_conv.ft", {"n_faces": self.n, "feats": self.features, "channels": 64}, {}


class LongformerBack(Backward, Longformer):
    tolerance, wrt = 1e-3, [0, 1, 2]

    def __init__(self, heads, n, w, d):
        super().__init__(heads, n, w, d)
        self.name = f"longformer-back {heads}x{n}, window {w}"
        self.flops, self.bytes = 5 * self.flops // 2, 28 * heads * n * d

    def program(self):
        return "longformer/longformer.ft", dict(zip(("heads", "n", "d"), self.shape)), {"w": self.w}


class SoftRasteriserBack(Backward, SoftRasteriser):
    name, wrt = "softras-back", [0]
    flops, bytes = 512 * 64 * 64 * 200, 4 * 512 * 64 * 64

    def result(self, corners):
        return (self.faces, self.size, self.size)

    def program(self):
        return "softras/softras.ft", {"n_faces": self.faces}, {"size": self.size}

    def arguments(self, corners, cotangent):
        return [corners, np.array(self.sigma, np.float32), cotangent]


class GraphAttentionBack(Backward, GraphAttention):
    wrt = [0, 1, 2, 3]

    def __init__(self, nodes, edges):
        super().__init__(nodes, edges)
        self.name = f"gat-back {nodes} nodes"
        self.flops, self.bytes = 3 * self.flops, 4 * (5 * nodes * self.features + edges * 3)

    def program(self):
        sizes = {"n": self.nodes, "m": self.edges, "feats": self.features, "channels": self.features}
        return "gat/gat.ft", sizes, {}


BACKWARD = [
    CircularDifferenceBack(),
    MeshConvolutionBack(),
    LongformerBack(8, 2048, 32, 64),
    LongformerBack(1, 10000, 32, 64),
    LongformerBack(1, 4096, 128, 64),
    LongformerBack(1, 10000, 256, 64),
    SoftRasteriserBack(),
    GraphAttentionBack(2708, 10556),
    GraphAttentionBack(50000, 500000),
]
