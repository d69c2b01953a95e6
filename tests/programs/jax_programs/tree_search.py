"""Monte Carlo tree search for a game of taking stones: a tree in arrays, selection and backing up by while loops, a batch of roots by vmap."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

ACTIONS, SIMULATIONS, NONE = 3, 24, -1


class Tree(NamedTuple):
    visits: jax.Array
    values: jax.Array
    stones: jax.Array
    parents: jax.Array
    children: jax.Array
    size: jax.Array


def empty(stones):
    n = SIMULATIONS + 1
    tree = Tree(jnp.zeros(n, jnp.int32), jnp.zeros(n), jnp.zeros(n, jnp.int32), jnp.full(n, NONE), jnp.full((n, ACTIONS), NONE), jnp.int32(1))
    return tree._replace(stones=tree.stones.at[0].set(stones))


def scores(tree, node):
    children = tree.children[node]
    n = tree.visits[children]
    mean = -tree.values[children] / jnp.maximum(n, 1)
    explore = jnp.sqrt(2 * jnp.log(tree.visits[node].astype(jnp.float32) + 1.0) / jnp.maximum(n, 1))
    legal = jnp.arange(1, ACTIONS + 1) <= tree.stones[node]
    return jnp.where(legal, jnp.where(children == NONE, 100.0 - jnp.arange(ACTIONS), mean + explore), -jnp.inf)


def select(tree):
    def going(state):
        node, action = state
        return (tree.stones[node] > 0) & (tree.children[node, action] != NONE)

    def down(state):
        node = tree.children[state]
        return node, jnp.argmax(scores(tree, node))

    return lax.while_loop(going, down, (jnp.int32(0).astype(tree.children.dtype), jnp.argmax(scores(tree, 0))))


def playout(stones):
    """Who moves wins with 1, where both take what a fixed pattern says."""

    def take(state):
        left, turn, i = state
        return left - jnp.minimum(left, 1 + (i * 7 + left) % ACTIONS), -turn, i + 1

    _, turn, _ = lax.while_loop(lambda s: s[0] > 0, take, (stones, 1.0, 0))
    return -turn


def back_up(tree, node, value):
    def up(state):
        tree, node, value = state
        tree = tree._replace(visits=tree.visits.at[node].add(1), values=tree.values.at[node].add(value))
        return tree, tree.parents[node], -value

    return lax.while_loop(lambda s: s[1] != NONE, up, (tree, node, value))[0]


def simulate(_, tree):
    node, action = select(tree)
    over = tree.stones[node] == 0

    def expand(tree):
        new = tree.size
        grown = tree._replace(
            children=tree.children.at[node, action].set(new),
            parents=tree.parents.at[new].set(node),
            stones=tree.stones.at[new].set(tree.stones[node] - action.astype(jnp.int32) - 1),
            size=new + 1,
        )
        return grown, new.astype(node.dtype)

    tree, leaf = lax.cond(over, lambda t: (t, node), expand, tree)
    value = jnp.where(tree.stones[leaf] == 0, -1.0, playout(tree.stones[leaf]))
    return back_up(tree, leaf, value)


@jax.jit
def search(stones):
    tree = lax.fori_loop(0, SIMULATIONS, simulate, empty(stones))
    below = tree.visits[tree.children[0]] * (tree.children[0] != NONE)
    return below, tree.size, tree.values[0]


def main():
    piles = jnp.array([3, 4, 5, 7, 10, 13], jnp.int32)
    visits, sizes, values = jax.vmap(search)(piles)
    alone = search(piles[3])
    order = lax.top_k(visits, 2)
    return {
        "visits": visits, "sizes": sizes, "values": values, "alone": jnp.all(alone[0] == visits[3]), "moves": jnp.argmax(visits, -1) + 1,
        "top": order[0], "packed": lax.population_count(visits),
    }  # fmt: skip
