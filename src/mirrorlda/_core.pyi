"""The compiled core: arrays in, arrays out. Floating-point arrays of one call are all float32 or all float64."""

from typing import Literal, overload

import numpy as np

FLOOR: float

def block_docs(n_docs: int) -> int: ...
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
    first: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def row_sums(
    rows: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    n_words: int,
    block_docs: int = 0,
) -> np.ndarray: ...
def weigh_rows(
    weights: np.ndarray,
    lag: np.ndarray,
    rows: np.ndarray,
    gradient: np.ndarray,
    rate: float,
    clip: float,
    lowest: float,
    highest: float,
    average_weight: float,
    n_threads: int,
) -> None: ...
def logarithmic(counts: np.ndarray) -> np.ndarray: ...
def read_documents(
    shard: np.ndarray,
    table: np.ndarray,
    sizes: np.ndarray,
    block_docs: int,
    word_bytes: int,
    documents: np.ndarray,
    to: np.ndarray,
    logarithmic: bool,
    indices: np.ndarray,
    counts: np.ndarray,
) -> None: ...
def is_sound(
    shard: np.ndarray,
    table: np.ndarray,
    sizes: np.ndarray,
    block: int,
    word_bytes: int,
    n_words: int,
    largest_count: float,
) -> bool: ...
def left_to_right(
    phi: np.ndarray,
    alpha: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    documents: np.ndarray,
    n_draws: int,
    seed: int,
    n_threads: int,
) -> np.ndarray: ...
def chib(
    phi: np.ndarray,
    alpha: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    documents: np.ndarray,
    n_draws: int,
    seed: int,
    n_threads: int,
) -> np.ndarray: ...
def mirror_rows(
    z: np.ndarray,
    average: np.ndarray | None,
    frame: np.ndarray,
    rows: np.ndarray,
    gradient: np.ndarray,
    rate: np.ndarray,
    n_threads: int,
) -> np.ndarray: ...
def settle(z: np.ndarray, average: np.ndarray | None, frame: np.ndarray, n_threads: int) -> np.ndarray: ...
def log_changes(
    z: np.ndarray, rows: np.ndarray, before: np.ndarray, shift: np.ndarray, floor: np.ndarray, weight: float
) -> np.ndarray: ...
def add_rows(
    left_rows: np.ndarray, left: np.ndarray, right_rows: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]: ...
def count_rows(
    counts: np.ndarray, rows: np.ndarray, gradient: np.ndarray, frame: np.ndarray, factor: float, n_threads: int
) -> np.ndarray: ...
def column_squares(gradient: np.ndarray, n_threads: int) -> np.ndarray: ...
def scores(theta: np.ndarray, U: np.ndarray, n_threads: int) -> np.ndarray: ...
def back_scores(grad_scores: np.ndarray, U: np.ndarray, n_threads: int) -> np.ndarray: ...
def outer(grad_scores: np.ndarray, theta: np.ndarray, n_threads: int, block_docs: int = 0) -> np.ndarray: ...
def solve_rows(matrix: np.ndarray, rows: np.ndarray, n_threads: int) -> np.ndarray: ...

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
        tol: float,
        steps: np.ndarray | None,
        frame: np.ndarray | None,
        keep: bool,
        objective: bool,
        n_threads: int,
    ) -> np.ndarray: ...
    def decode(
        self,
        phi: np.ndarray,
        frame: np.ndarray | None,
        indptr: np.ndarray,
        indices: np.ndarray,
        counts: np.ndarray,
        documents: np.ndarray,
        theta: np.ndarray,
        weights: np.ndarray | None,
        rows: np.ndarray | None,
        n_threads: int,
        block_docs: int = 0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]: ...
    def trace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def objective(self) -> np.ndarray: ...
    @overload
    def reverse(
        self,
        grad_theta: np.ndarray | None,
        word_weights: np.ndarray | None,
        rows: np.ndarray,
        want_counts: Literal[True],
        n_threads: int,
        block_docs: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def reverse(
        self,
        grad_theta: np.ndarray | None,
        word_weights: np.ndarray | None,
        rows: np.ndarray,
        want_counts: bool,
        n_threads: int,
        block_docs: int = 0,
    ) -> tuple[np.ndarray, np.ndarray | None]: ...

class Engine64(Engine32): ...

UNICODE_VERSION: str

def is_assigned(code_point: int) -> bool: ...

class TextDefinition:
    def __init__(self, lowercase: bool, bigrams: bool, stop_words: list[str]) -> None: ...
    def words(self, text: str) -> list[str]: ...

class WordTable:
    def __init__(self, words: list[str]) -> None: ...
    @staticmethod
    def from_arrays(letters: np.ndarray, offsets: np.ndarray) -> WordTable: ...
    def arrays(self) -> tuple[np.ndarray, np.ndarray]: ...
    def __len__(self) -> int: ...
    def find(self, word: str) -> int: ...
    def word(self, number: int) -> str: ...
    def words(self) -> list[str]: ...
    def count(
        self, definition: TextDefinition, texts: list[str], first: int, n_threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

class WordCounts:
    def __init__(self, definition: TextDefinition, memory: int, directory: str, keep_documents: bool) -> None: ...
    @property
    def n_docs(self) -> int: ...
    @property
    def n_runs(self) -> int: ...
    def add(self, texts: list[str], first: int, n_threads: int) -> None: ...
    def counted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def add_counted(
        self, letters: np.ndarray, offsets: np.ndarray, totals: np.ndarray, docs: np.ndarray, n_docs: int
    ) -> None: ...
    def select(self, max_words: int, min_docs: int, min_phrase_docs: int, max_docs: int) -> tuple[WordTable, np.ndarray, int]: ...
    def documents(self, vocabulary: WordTable, n_threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
