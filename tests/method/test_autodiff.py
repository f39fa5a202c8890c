"""Gradients against JAX's automatic differentiation of the unrolled layers, documents dense."""

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from oracle_jax import jax_theta
from test_gradients import GAMMA, RESPONSES, assert_gradients_agree, make_response

from mirrorlda import infer, value_and_grad


def jax_loss(phi, counts, U, y, alpha, steps, name):
    thetas = jax.vmap(jax_theta, in_axes=(None, 0, None, 0))(phi, counts, alpha, steps)
    if name == "words":
        thetas = jax.lax.stop_gradient(thetas)
        return -(counts * jnp.log(thetas @ phi.T)).sum()
    scores = thetas @ U.T
    if name == "squared_error":
        return GAMMA / 2 * ((y - scores) ** 2).sum()
    return -jnp.take_along_axis(jax.nn.log_softmax(GAMMA * scores), y[:, None], axis=1).sum()


jax_value_and_grad = jax.jit(jax.value_and_grad(jax_loss, argnums=(0, 1, 2)), static_argnames="name")


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.001, "vector"], indirect=True)
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("n_topics", [6])
@pytest.mark.parametrize("dtype", [np.float64])
def test_gradients_agree_with_jax(make_problem, n_topics, name, alpha):
    n_words, n_layers = 50, 6
    phi, X = make_problem(n_topics, [0, 1, 2, 9, 20, 45], n_words=n_words)
    response, U, y = make_response(name, X, n_topics)
    steps = infer(phi, X, alpha=alpha, n_layers=n_layers).step_sizes
    gradient = value_and_grad(phi, U, X, y, response, alpha=alpha, n_layers=n_layers, step_size=steps)

    alpha = jnp.broadcast_to(alpha, n_topics)
    loss, (grad_phi, grad_X, grad_U) = jax_value_and_grad(phi, X.toarray(), U, y, alpha, steps, name=name)
    stored = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices
    assert_gradients_agree(gradient, oracle.Gradient(loss, grad_phi, grad_U, grad_X[stored]), 1e-9)


@pytest.mark.parametrize("name", ["squared_error", "softmax"])
def test_no_gradient_passes_a_component_on_the_floor(make_problem, name):
    """Layer 1 sends a topic just below the floor, layer 2 brings it back: its slope of 1 / floor must be masked."""
    n_topics, alpha = 4, np.full(4, 1.5)
    phi, X = make_problem(n_topics, [12], n_words=12)
    response, U, y = make_response(name, X, n_topics)
    document = oracle.document(phi, X, 0, alpha)
    g = oracle.negative_gradient(np.full(n_topics, 1 / n_topics), *document)
    to_the_floor = np.log(1e13) / (g.max() - g.min())
    back = np.log(1e11) * oracle.FLOOR / 0.5
    options = {"alpha": alpha, "n_layers": 2, "step_size": np.array([[to_the_floor, back]])}

    thetas = infer(phi, X, **options).thetas[0]
    assert thetas[1].min() == oracle.FLOOR
    assert thetas[2][thetas[1].argmin()] > 1e-3
    gradient = value_and_grad(phi, U, X, y, response, **options)
    expected = oracle.value_and_grad(phi, U, X, y, getattr(oracle, name), gamma=GAMMA, **options)
    assert_gradients_agree(gradient, expected, 1e-9)
    loss, (grad_phi, grad_X, grad_U) = jax_value_and_grad(phi, X.toarray(), U, y, alpha, options["step_size"], name=name)
    # Large terms cancel here, and JAX adds them in an order of its own; a slope that passed would be off by far more.
    assert_gradients_agree(gradient, oracle.Gradient(loss, grad_phi, grad_U, grad_X[0]), 1e-7)
