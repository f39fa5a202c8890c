"""The paper in plain float64 NumPy, one document at a time: what the core is checked against.

Names follow the paper. A document is `P` (the rows of phi of its distinct words, n x n_topics), their counts
`x` (n) and `alpha` (n_topics). Nothing of the package is imported.
"""

from typing import NamedTuple

import numpy as np

FLOOR = 1e-12
ETA = 0.5
MAX_STEPS = 40
SLACK = 1e-9


class Trace(NamedTuple):
    """The layers of one document; `raws` are the mirror steps before the floor."""

    thetas: np.ndarray  # (n_layers + 1, n_topics)
    raws: np.ndarray  # (n_layers, n_topics)
    step_sizes: np.ndarray  # (n_layers,)
    n_trials: np.ndarray  # (n_layers,), 0 without a line search
    objective: np.ndarray  # (n_layers + 1,)


class Gradient(NamedTuple):
    """The loss of a corpus and its gradients, the gradient of phi dense."""

    loss: float
    grad_phi: np.ndarray  # (n_words, n_topics)
    grad_U: np.ndarray | None  # (n_outputs, n_topics)
    grad_counts: np.ndarray  # (nnz,)


def document(phi, X, d, alpha):
    """P, x and alpha of row d of a canonical CSR matrix."""
    row = slice(X.indptr[d], X.indptr[d + 1])
    phi = np.asarray(phi, dtype=np.float64)
    x = np.asarray(X.data[row], dtype=np.float64)
    return phi[X.indices[row]], x, np.broadcast_to(np.asarray(alpha, dtype=np.float64), phi.shape[1])


# Inference: Algorithm 1


def objective(theta, P, x, alpha):
    """f(theta) = -x^T ln(P theta) - (alpha - 1)^T ln theta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -x @ np.log(P @ theta) - (alpha - 1) @ np.log(theta)


def negative_gradient(theta, P, x, alpha):
    """g = -grad f(theta)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return P.T @ (x / (P @ theta)) + (alpha - 1) / theta


def mirror_step(theta, g, T):
    """theta exp(T g) / C, before the floor."""
    p = theta * np.exp(T * g - np.max(T * g))
    return p / p.sum()


def divergence(theta_new, theta, rule):
    """Psi: half the squared 1-norm of the change, or KL(theta' || theta), which the floor and rounding leave positive."""
    if rule == "l1":
        return np.abs(theta_new - theta).sum() ** 2 / 2
    return theta_new @ np.log(theta_new / theta) - (theta_new - theta).sum()


def excess(theta, T, rule, P, x, alpha):
    """By how much f(theta') exceeds f(theta) - g.(theta' - theta) + Psi(theta', theta) / T; NaN if either is NaN.

    theta' is the floored one throughout. From the step before the floor, where ln(theta' / theta) = T g - ln C, the
    KL bound would be f + g.theta - ln(C) / T: a descent that the floor does not allow, so that with alpha < 1 no
    step passes once a component is on the floor.
    """
    f, g = objective(theta, P, x, alpha), negative_gradient(theta, P, x, alpha)
    theta_new = np.maximum(mirror_step(theta, g, T), FLOOR)
    with np.errstate(invalid="ignore"):
        return objective(theta_new, P, x, alpha) - (f - g @ (theta_new - theta) + divergence(theta_new, theta, rule) / T)


def overshoot(theta, T, rule, P, x, alpha):
    """The Bregman divergence of f over what acceptance allows, with t^2 / (2 + 4 t / 3) for t - ln(1 + t); may be NaN."""
    theta_new = np.maximum(mirror_step(theta, negative_gradient(theta, P, x, alpha), T), FLOOR)
    change = theta_new - theta
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (P @ change) / (P @ theta)
        gap = x @ (t * (t / (2 + 4 * t / 3))) + (alpha - 1) @ (change / theta - np.log(theta_new / theta))
        return gap / (divergence(theta_new, theta, rule) / T + SLACK * abs(objective(theta, P, x, alpha)))


def initial_step(x, alpha):
    """T_0 = 1 / (N + sum |alpha - 1|), or 1 if that is 1 / 0."""
    scale = x.sum() + np.abs(alpha - 1).sum()
    return 1 / scale if scale > 0 else 1.0


def telling(theta, T, rule, P, x, alpha):
    """Psi / T over the slack: above 1 the change of a step is large enough to tell whether the step is too long. May be NaN."""
    theta_new = np.maximum(mirror_step(theta, negative_gradient(theta, P, x, alpha), T), FLOOR)
    with np.errstate(divide="ignore", invalid="ignore"):
        return divergence(theta_new, theta, rule) / T / (SLACK * abs(objective(theta, P, x, alpha)))


def line_search(theta, T_first, rule, P, x, alpha):
    """The trials of one layer.

    The steps are T_first eta^i, i < MAX_STEPS. A rejected one is followed by the first at which an overshoot that falls
    with T would be at most 1. Returns the last step tried, the number of trials, and whether that step was accepted.
    """
    slack = SLACK * abs(objective(theta, P, x, alpha))
    i, n_trials = 0, 1
    while not excess(theta, T_first * ETA**i, rule, P, x, alpha) <= slack:
        if i == MAX_STEPS - 1:
            return T_first * ETA**i, n_trials, False
        over = overshoot(theta, T_first * ETA**i, rule, P, x, alpha)
        n_halvings = np.ceil(np.log2(over)) if over > 1 else 1
        i = int(min(i + n_halvings, MAX_STEPS - 1))
        n_trials += 1
    return T_first * ETA**i, n_trials, True


def gain(theta, theta_new, P, x, alpha):
    """f(theta) - f(theta'), with t - t^2 / (2 + 4 t / 3) for ln(1 + t) of the words."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (P @ (theta_new - theta)) / (P @ theta)
        return x @ (t - t * (t / (2 + 4 * t / 3))) + (alpha - 1) @ np.log(theta_new / theta)


def infer(P, x, alpha, n_layers, step_size, tol=0.0):
    """theta of every layer; step_size is "l1", "kl", a number, or the n_layers steps to replay.

    With a line search, theta stays once the last two layers gained no more than tol times what all layers gained.
    """
    n_topics = P.shape[1]
    theta = np.full(n_topics, 1 / n_topics)
    thetas, raws, step_sizes, n_trials = [theta], [], [], []
    T_first = initial_step(x, alpha) / ETA
    gains, stays = [0.0], False
    for layer in range(n_layers):
        trials = 0
        if stays:
            T = 0.0
        elif isinstance(step_size, str):
            T_tried, trials, accepted = line_search(theta, T_first, step_size, P, x, alpha)
            T = T_tried if accepted else 0.0
            T_first = T_tried / ETA if not accepted or telling(theta, T, step_size, P, x, alpha) > 1 else T_tried
        else:
            T = float(np.broadcast_to(step_size, n_layers)[layer])
        raw = theta
        if T != 0:
            raw = mirror_step(theta, negative_gradient(theta, P, x, alpha), T)
        before, theta = theta, np.maximum(raw, FLOOR)
        if isinstance(step_size, str) and tol:
            gains.append(gain(before, theta, P, x, alpha))
            stays = not sum(gains[-2:]) > tol * sum(gains)
        thetas.append(theta)
        raws.append(raw)
        step_sizes.append(T)
        n_trials.append(trials)
    f = [objective(theta, P, x, alpha) for theta in thetas]
    return Trace(*map(np.array, (thetas, raws, step_sizes, n_trials, f)))


# Back-propagation: Algorithm 4


def reverse(trace, P, x, alpha, h):
    """Gradients of P and x, given h, the gradient of theta_L, and the step sizes taken as constants."""
    grad_P, grad_x = np.zeros_like(P), np.zeros_like(x)
    for layer in reversed(range(len(trace.step_sizes))):
        T, theta, raw = trace.step_sizes[layer], trace.thetas[layer], trace.raws[layer]
        if T == 0:
            continue
        h = np.where(raw > FLOOR, h, 0.0)
        xi = h - raw @ h
        v = raw * xi
        u, r = P @ v, P @ theta
        grad_P += T * (np.outer(x / r, v) - np.outer(u * x / r**2, theta))
        grad_x += T * u / r
        h = v / theta - T * (P.T @ (x * u / r**2) + (alpha - 1) / theta**2 * v)
    return grad_P, grad_x


# Responses: each returns the loss, its gradient with respect to theta_L, and with respect to U


def squared_error(theta, U, y, gamma):
    """gamma / 2 ||y - U theta||^2."""
    residual = U @ theta - y
    return gamma / 2 * residual @ residual, gamma * U.T @ residual, gamma * np.outer(residual, theta)


def softmax(theta, U, y, gamma):
    """-ln Softmax(gamma U theta)[y]."""
    scores = gamma * U @ theta
    log_partition = scores.max() + np.log(np.exp(scores - scores.max()).sum())
    residual = np.exp(scores - log_partition)
    residual[y] -= 1
    return log_partition - scores[y], gamma * U.T @ residual, gamma * np.outer(residual, theta)


def words(theta, P, x):
    """BP-LDA: -x^T ln(P theta) and its gradients of P and x, theta held fixed."""
    r = P @ theta
    return -x @ np.log(r), -np.outer(x / r, theta), -np.log(r)


def decoded(theta, P, x):
    """What themes say of a document: -x^T ln(P theta), its gradient of theta, and which part of each count a theme has."""
    r = P @ theta
    return -x @ np.log(r), -P.T @ (x / r), x[:, None] * P * theta / r[:, None]


def value_and_grad(phi, U, X, y, response, *, alpha, n_layers, step_size, gamma=1.0, sample_weight=None):
    """The weighted sum of the documents' losses and its gradients; step_size is (n_docs, n_layers) or one for all.

    response is `squared_error`, `softmax` or `words` of this module.
    """
    n_docs = X.shape[0]
    weights = np.ones(n_docs) if sample_weight is None else sample_weight
    loss, grad_phi, grad_counts = 0.0, np.zeros(phi.shape), np.zeros(X.nnz)
    grad_U = None if U is None else np.zeros(U.shape)
    for d in range(n_docs):
        P, x, alpha_d = document(phi, X, d, alpha)
        steps = step_size if np.ndim(step_size) == 0 else step_size[d]
        trace = infer(P, x, alpha_d, n_layers, steps)
        theta = trace.thetas[-1]
        if response is words:
            loss_d, grad_P, grad_x = words(theta, P, x)
        else:
            loss_d, h, grad_U_d = response(theta, np.asarray(U, dtype=np.float64), y[d], gamma)
            grad_P, grad_x = reverse(trace, P, x, alpha_d, h)
            grad_U += weights[d] * grad_U_d
        row = slice(X.indptr[d], X.indptr[d + 1])
        loss += weights[d] * loss_d
        grad_phi[X.indices[row]] += weights[d] * grad_P
        grad_counts[row] = weights[d] * grad_x
    return Gradient(loss, grad_phi, grad_U, grad_counts)


# Learning: Algorithm 3's mirror step with the affine prior


def learning_step(phi, grad, rates, c, touched):
    """phi <- (phi exp(clip(-rate g, -1, 1)) + c) / C, columns normalised, the floor on touched rows only."""
    g = np.where(touched[:, None], grad, 0.0)
    p = phi * np.exp(np.clip(-rates * g, -1, 1))
    p = np.where(touched[:, None], np.maximum(p, FLOOR), p) + c
    return p / p.sum(axis=0)
