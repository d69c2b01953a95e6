"""Message passing on a graph: attention over edges by segments, energies with forces as their gradients, and training by checkpointed layers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, ops
from jax.tree_util import register_dataclass, register_pytree_node_class

NODES, EDGES, WIDTH, LAYERS = 12, 40, 8, 3


@register_pytree_node_class
class Graph:
    def __init__(self, senders, receivers, nodes):
        self.senders, self.receivers, self.nodes = senders, receivers, nodes

    def tree_flatten(self):
        return (self.senders, self.receivers), self.nodes

    @classmethod
    def tree_unflatten(cls, nodes, children):
        return cls(*children, nodes)


@register_dataclass
@dataclasses.dataclass
class Layer:
    message: jax.Array
    gate: jax.Array
    update: jax.Array
    heads: int = dataclasses.field(metadata={"static": True}, default=2)


def problem():
    rng = np.random.default_rng(9)
    graph = Graph(jnp.asarray(rng.integers(0, NODES, EDGES)), jnp.asarray(rng.integers(0, NODES, EDGES)), NODES)
    normal = lambda *shape: jnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[-2]), dtype=jnp.float32)  # noqa: E731
    layers = Layer(normal(LAYERS, 2 * WIDTH + 1, WIDTH), normal(LAYERS, WIDTH, 2), normal(LAYERS, 2 * WIDTH, WIDTH))
    return graph, layers, normal(NODES, 3), normal(NODES, WIDTH)


def segment_softmax(logits, segments, count):
    top = ops.segment_max(logits, segments, num_segments=count)
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    weights = jnp.exp(logits - top[segments])
    return weights / ops.segment_sum(weights, segments, num_segments=count)[segments]


@jax.checkpoint
def passed(layer, graph, positions, features):
    apart = positions[graph.senders] - positions[graph.receivers]
    distance = jnp.sqrt(jnp.sum(apart**2, -1, keepdims=True) + 1e-2)
    inputs = jnp.concatenate([features[graph.senders], features[graph.receivers], distance], axis=-1)
    messages = nn.silu(inputs @ layer.message)
    attention = segment_softmax(messages @ layer.gate, graph.receivers, graph.nodes)
    parts = messages.reshape(EDGES, layer.heads, -1) * attention[..., None]
    gathered = jax.ops.segment_sum(parts.reshape(EDGES, -1), graph.receivers, graph.nodes)
    return features + nn.silu(jnp.concatenate([features, gathered], -1) @ layer.update)


def energy(layers, graph, positions, features):
    step = lambda x, layer: (passed(layer, graph, positions, x), jnp.linalg.norm(x))  # noqa: E731
    features, norms = lax.scan(step, features, layers)
    return jnp.sum(nn.standardize(features, axis=-1) ** 3) + jnp.sum(features[:, 0]), norms


def forces(layers, graph, positions, features):
    slope, norms = jax.grad(energy, argnums=2, has_aux=True)(layers, graph, positions, features)
    return -slope, norms


@jax.jit
def trained(layers, graph, positions, features):
    loss = lambda ls: jnp.mean((forces(ls, graph, positions, features)[0] - jnp.sin(positions)) ** 2)  # noqa: E731

    def step(ls, _):
        value, slope = jax.value_and_grad(loss)(ls)
        return jax.tree.map(lambda p, g: p - 0.05 * g / (1 + jnp.linalg.norm(g)), ls, slope), value

    return lax.scan(step, layers, length=5)


def main():
    graph, layers, positions, features = problem()
    pull, norms = jax.jit(forces)(layers, graph, positions, features)
    degrees = jnp.bincount(graph.receivers, length=NODES)
    found, losses = trained(layers, graph, positions, features)
    product = jnp.zeros((NODES, NODES)).at[graph.receivers, graph.senders].add(1.0)
    furthest = ops.segment_min(positions[graph.senders, 0], graph.receivers, NODES, indices_are_sorted=False)
    return {
        "forces": pull,
        "norms": norms,
        "losses": losses,
        "gates": found.gate,
        "degrees": degrees,
        "laplacian": jnp.linalg.eigvalsh(jnp.diag(product.sum(1) + product.sum(0)) - product - product.T),
        "furthest": jnp.where(degrees > 0, furthest, 0.0),
        "shift": jnp.abs(pull.sum(0)) < 1e-4,
    }
