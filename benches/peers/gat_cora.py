"""The graph attention network of `examples/gat/train.ft` in PyTorch: the same graph, split, network, optimiser, numbers
of epochs and of seeds. Prints the accuracy on the test nodes for every seed, the mean, and the seconds per epoch.

    TAFFETA_DATA=… python benches/peers/gat_cora.py [SEEDS] [EPOCHS]

Plain tensor operations, as most programs write it: edges as two index tensors, sums over neighbours by `index_add`, the
features a dense matrix. `--sparse` keeps the features as a sparse matrix, and applies dropout only to its words.
"""
import os
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

KNOWN, TEST = 140, 1000
HEADS, HIDDEN, DROP, RATE, DECAY = 8, 8, 0.6, 0.005, 5e-4


def coordinates(name):
    """Reads the coordinates of a Matrix Market file, from 0."""
    with open(os.path.join(os.environ["TAFFETA_DATA"], "graphs", name), encoding="utf-8") as f:
        lines = [line.split() for line in f if not line.startswith("%")]
    return torch.tensor([[int(v) - 1 for v in line[:2]] for line in lines[1:]]).T


def cora():
    with open(os.path.join(os.environ["TAFFETA_DATA"], "graphs", "cora_labels.txt"), encoding="utf-8") as f:
        labels = torch.tensor([int(line) for line in f])
    n = len(labels)
    rows, words = coordinates("cora_features.mtx")
    weights = 1.0 / torch.bincount(rows, minlength=n)[rows].float()
    features = torch.sparse_coo_tensor(torch.stack([rows, words]), weights, (n, 1433)).coalesce()
    a, b = coordinates("cora_edges.mtx")
    loops = torch.arange(n)
    return features, labels, torch.cat([a, b, loops]), torch.cat([b, a, loops])


class Attention(nn.Module):
    def __init__(self, inputs, heads, width):
        super().__init__()
        self.w = nn.Parameter(torch.empty(heads, inputs, width))
        self.src = nn.Parameter(torch.empty(heads, width, 1))
        self.dst = nn.Parameter(torch.empty(heads, width, 1))
        self.bias = nn.Parameter(torch.zeros(heads, width))
        for p in (self.w, self.src, self.dst):
            for head in p:
                nn.init.xavier_uniform_(head)

    def forward(self, x, src, dst):
        heads, _, width = self.w.shape
        n = x.shape[0]
        h = torch.sparse.mm(x, self.w.permute(1, 0, 2).reshape(-1, heads * width)) if x.is_sparse else (
            x @ self.w.permute(1, 0, 2).reshape(-1, heads * width))
        h = h.view(n, heads, width)
        score = F.leaky_relu((h * self.src[..., 0]).sum(-1)[src] + (h * self.dst[..., 0]).sum(-1)[dst], 0.2)
        peak = torch.full((n, heads), -torch.inf).index_reduce(0, dst, score.detach(), "amax")
        weight = torch.exp(score - peak[dst])
        total = torch.zeros(n, heads).index_add(0, dst, weight)
        weight = F.dropout(weight / total[dst], DROP, self.training)
        return torch.zeros(n, heads, width).index_add(0, dst, weight[..., None] * h[src]) + self.bias


class Network(nn.Module):
    def __init__(self, feats, classes):
        super().__init__()
        self.first = Attention(feats, HEADS, HIDDEN)
        self.second = Attention(HEADS * HIDDEN, 1, classes)

    def forward(self, x, src, dst):
        if x.is_sparse:
            x = torch.sparse_coo_tensor(x.indices(), F.dropout(x.values(), DROP, self.training), x.shape, is_coalesced=True)
        else:
            x = F.dropout(x, DROP, self.training)
        x = F.elu(self.first(x, src, dst).flatten(1))
        return self.second(F.dropout(x, DROP, self.training), src, dst)[:, 0]


def train(seed, epochs, features, labels, src, dst):
    torch.manual_seed(seed)
    network = Network(features.shape[1], int(labels.max()) + 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, weight_decay=DECAY)
    start = time.perf_counter()
    for _ in range(epochs):
        network.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(network(features, src, dst)[:KNOWN], labels[:KNOWN])
        loss.backward()
        optimiser.step()
    seconds = time.perf_counter() - start
    network.eval()
    with torch.no_grad():
        right = network(features, src, dst).argmax(1) == labels
    return loss.item(), right[-TEST:].float().mean().item(), seconds / epochs


def main():
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    seeds, epochs = numbers + [10, 200][len(numbers):]
    features, labels, src, dst = cora()
    if "--sparse" not in sys.argv:
        features = features.to_dense()
    found = []
    for seed in range(seeds):
        loss, accuracy, seconds = train(seed, epochs, features, labels, src, dst)
        found.append((accuracy, seconds))
        print(f"seed {seed}: loss {loss:.4f}, test accuracy {accuracy:.4f}, {1000 * seconds:.2f} ms an epoch", flush=True)
    mean = sum(a for a, _ in found) / len(found)
    print(f"mean test accuracy {mean:.4f}, fastest {1000 * min(s for _, s in found):.2f} ms an epoch")


if __name__ == "__main__":
    main()
