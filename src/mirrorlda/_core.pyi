"""The compiled core: arrays in, arrays out. Floating-point arrays of one call are all float32 or all float64."""

import numpy as np

FLOOR: float

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def distinct_words(
    indptr: np.ndarray, indices: np.ndarray, documents: np.ndarray, n_words: int, n_threads: int
) -> np.ndarray: ...
def thinned(
    indptr: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    documents: np.ndarray,
    word_weights: np.ndarray | None,
    fraction: float,
    seed: int,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def catch_up(
    phi: np.ndarray,
    average: np.ndarray | None,
    last: np.ndarray,
    history: np.ndarray,
    step: int,
    rows: np.ndarray,
    n_threads: int,
) -> None: ...
def mirror_rows(
    phi: np.ndarray, rows: np.ndarray, gradient: np.ndarray, rate: np.ndarray, n_threads: int
) -> tuple[np.ndarray, np.ndarray]: ...
def column_squares(gradient: np.ndarray, n_threads: int) -> np.ndarray: ...
def scores(theta: np.ndarray, U: np.ndarray, n_threads: int) -> np.ndarray: ...
def back_scores(grad_scores: np.ndarray, U: np.ndarray, n_threads: int) -> np.ndarray: ...
def outer(grad_scores: np.ndarray, theta: np.ndarray, n_threads: int) -> np.ndarray: ...

class Engine32:
    def __init__(self) -> None: ...
    def forward(
        self,
        phi: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        counts: np.ndarray,
        documents: np.ndarray,
        alpha: np.ndarray,
        n_layers: int,
        rule: int,
        steps: np.ndarray | None,
        keep: bool,
        objective: bool,
        n_threads: int,
    ) -> np.ndarray: ...
    def trace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def objective(self) -> np.ndarray: ...
    def reverse(
        self,
        grad_theta: np.ndarray | None,
        word_weights: np.ndarray | None,
        rows: np.ndarray,
        want_counts: bool,
        n_threads: int,
    ) -> tuple[np.ndarray, np.ndarray | None]: ...

class Engine64(Engine32): ...
