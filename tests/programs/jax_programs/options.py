"""Prices of options: paths from given numbers, Greeks by derivatives of paths, implied volatilities by roots, exercise by regression."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.stats import norm

PATHS, STEPS = 256, 12


def normals():
    half = np.random.default_rng(14).standard_normal((PATHS // 2, STEPS)).astype(np.float32)
    return jnp.concatenate([half, -half])


def paths(market, z):
    spot, volatility, rate, maturity = market
    dt = maturity / STEPS
    moves = (rate - 0.5 * volatility**2) * dt + volatility * jnp.sqrt(dt) * z
    return spot * jnp.exp(jnp.cumsum(moves, axis=-1))


def asian_call(market, strike, z):
    pay = jnp.maximum(paths(market, z).mean(-1) - strike, 0.0)
    return jnp.exp(-market[2] * market[3]) * pay.mean()


def smooth_digital(market, strike, z):
    return jnp.exp(-market[2] * market[3]) * jax.nn.sigmoid((paths(market, z)[:, -1] - strike) / 2.0).mean()


def black_scholes(volatility, market, strike):
    spot, _, rate, maturity = market
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * maturity) / (volatility * jnp.sqrt(maturity))
    return spot * norm.cdf(d1) - strike * jnp.exp(-rate * maturity) * norm.cdf(d1 - volatility * jnp.sqrt(maturity))


@jax.custom_jvp
def implied(price, market, strike):
    def narrower(state):
        low, high, i = state
        middle = 0.5 * (low + high)
        above = black_scholes(middle, market, strike) > price
        return jnp.where(above, low, middle), jnp.where(above, middle, high), i + 1

    low, high, _ = lax.while_loop(lambda s: (s[2] < 40) & (s[1] - s[0] > 1e-6), narrower, (1e-3 + 0 * price, 2.0 + 0 * price, 0))
    return 0.5 * (low + high)


@implied.defjvp
def implied_jvp(primals, tangents):
    price, market, strike = primals
    found = implied(price, market, strike)
    vega = jax.grad(black_scholes)(found, market, strike)
    _, moved = jax.jvp(lambda m, k: black_scholes(lax.stop_gradient(found), m, k), (market, strike), tuple(tangents[1:]))
    return found, (tangents[0] - moved) / vega


@jax.jit
def american_put(market, strike, z):
    rate, dt = market[2], market[3] / STEPS
    prices = paths(market, z)

    def step(cash, spot):
        cash = cash * jnp.exp(-rate * dt)
        pay = jnp.maximum(strike - spot, 0.0)
        basis = jnp.stack([jnp.ones_like(spot), spot / strike, (spot / strike) ** 2], -1)
        weights = (pay > 0).astype(spot.dtype)[:, None]
        normal = basis.T @ (weights * basis) + 1e-3 * jnp.eye(3)
        guess = basis @ jnp.linalg.solve(normal, basis.T @ (weights[:, 0] * cash))
        stop = (pay > guess) & (pay > 0)
        return jnp.where(stop, pay, cash), stop.mean()

    cash, rates = lax.scan(step, jnp.maximum(strike - prices[:, -1], 0.0), prices[:, :-1].T, reverse=True)
    return jnp.exp(-rate * dt) * cash.mean(), rates


def main():
    z, market = normals(), jnp.array([100.0, 0.2, 0.03, 1.0])
    strikes = jnp.array([90.0, 100.0, 110.0])
    price = jax.jit(jax.vmap(asian_call, (None, 0, None)))(market, strikes, z)
    greeks = jax.vmap(jax.jit(jax.grad(asian_call)), (None, 0, None))(market, strikes, z)
    cross = jax.jacfwd(jax.grad(smooth_digital))(market, 100.0, z)
    plain = jax.vmap(black_scholes, (0, None, None))(jnp.array([0.1, 0.3, 0.7]), market, 105.0)
    back = jax.jit(jax.vmap(implied, (0, None, None)))(plain, market, 105.0)
    slopes = jax.vmap(jax.grad(implied, (0, 1, 2)), (0, None, None))(plain, market, 105.0)
    put, rates = american_put(market, 105.0, z)
    return {
        "price": price, "greeks": greeks, "cross": cross[:2, :2], "back": back, "put": put / 10, "sane": (rates >= 0) & (rates < 0.9),
        "slopes": jnp.concatenate([slopes[0][:, None], slopes[1][:, :1], slopes[2][:, None]], 1),
        "quantiles": jnp.quantile(paths(market, z)[:, -1] / 100, jnp.array([0.05, 0.5, 0.95])),
    }  # fmt: skip
