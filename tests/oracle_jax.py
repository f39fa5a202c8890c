"""Inference in JAX, to be differentiated automatically."""

import jax
import jax.numpy as jnp
import oracle

jax.config.update("jax_enable_x64", True)


def jax_theta(phi, x, alpha, steps):
    theta = jnp.full(phi.shape[1], 1 / phi.shape[1])
    for T in steps:
        g = phi.T @ (x / (phi @ theta)) + (alpha - 1) / theta
        p = theta * jnp.exp(T * g - jax.lax.stop_gradient(jnp.max(T * g)))
        theta = jnp.where(T == 0, theta, jnp.maximum(p / p.sum(), oracle.FLOOR))
    return theta
