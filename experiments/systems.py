"""Every system that the paper compares, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

import paper_settings
from baselines import gibbs_medlda, gibbs_slda, hybrid_slda, linear, network, spectral_slda, tomotopy_models, variational_slda
from baselines.search import LabelledSearch
from mirrorlda import TopicClassifier, TopicModel, TopicRegressor
from running import Job


class System(NamedTuple):
    """How the estimator for numbers and the one for two classes are made, from the job and the number of threads."""

    label: str
    regressor: Callable[[Job, int], Any]
    classifier: Callable[[Job, int], Any]
    # Whether the number of topics says how large it is; otherwise it is the same for all of them.
    has_topics: bool = True
    # Whether another seed gives another result.
    is_random: bool = True


def _given(job: Job) -> dict[str, Any]:
    """What the experiment sets, by the names of mirrorlda's parameters."""
    settings = {"alpha": job.alpha, "n_layers": job.n_layers}
    return {name: value for name, value in settings.items() if value is not None}


def _ours(estimator: type, **settings: Any) -> Callable[[Job, int], Any]:
    def make(job: Job, n_jobs: int) -> Any:
        return estimator(job.n_topics, random_state=job.repeat, n_jobs=n_jobs, **settings | _given(job))

    return make


def _on_proportions(topics: Callable[[Job, int], Any], tuned: Callable[..., Any]) -> Callable[[Job, int], Any]:
    return lambda job, n_jobs: linear.on_proportions(topics(job, n_jobs), tuned, job.row.measure, n_jobs)


def _theirs(estimator: type, *grids: dict[str, list[float]]) -> Callable[[Job, int], Any]:
    """A baseline that takes the number of topics; its other settings are chosen on a held-out tenth of the training part."""

    def make(job: Job, n_jobs: int) -> Any:
        model = estimator(job.n_topics, random_state=job.repeat)
        held_out = ShuffleSplit if job.row.measure == "r2" else StratifiedShuffleSplit
        return LabelledSearch(model, list(grids), scoring=job.row.measure, cv=held_out(1, test_size=0.1, random_state=0))

    return make


def _chosen(label: str, regressor: type, classifier: type, **grid: list[float]) -> System:
    return System(label, _theirs(regressor, grid), _theirs(classifier, grid))


def _linear(tuned: Callable[..., Any], features: linear.Features) -> Callable[[Job, int], Any]:
    return lambda job, n_jobs: tuned(features, job.row.measure, n_jobs)


def _gibbs_lda(job: Job, n_jobs: int) -> Any:
    return tomotopy_models.TomotopyLDA(job.n_topics, random_state=job.repeat, n_jobs=n_jobs)


def _same_size(make: Callable[..., Any]) -> Callable[[Job, int], Any]:
    return lambda job, n_jobs: make(job.n_topics, job.row.measure, job.repeat)


def _deep(make: Callable[..., Any]) -> Callable[[Job, int], Any]:
    return lambda job, n_jobs: make(job.row.measure, job.repeat)


_bp_lda = _ours(TopicModel, alpha=1.001, count_scale="linear")
# Dirichlet parameters of the proportions that the baselines choose from: those that were best for one target or the other. On
# 4,000 documents with 20 topics, measured on 4,000 others at 0.1, 0.3, 1, 3, 10, for stars (R2) and sentiment (AUC):
# variational sLDA 0.524, 0.542, 0.566, 0.548, 0.525 and 0.875, 0.882, 0.882, 0.865, 0.858;
# Gibbs-sLDA 0.454, 0.532, 0.519, 0.509 and, from 0.3 on, 0.881, 0.876, 0.889, 0.888;
# Gibbs MedLDA 0.515, 0.537, 0.539 and, from 0.3 on, 0.876, 0.884, 0.891, 0.886.
PRIORS, GIBBS_PRIORS = [0.1, 1.0], [0.3, 3.0]

SYSTEMS = {
    "bp-slda": System("BP-sLDA, defaults of mirrorlda", _ours(TopicRegressor), _ours(TopicClassifier)),
    "bp-slda-paper": System(
        "BP-sLDA, the paper's settings",
        _ours(paper_settings.PaperRegressor, **paper_settings.SETTINGS),
        _ours(paper_settings.PaperClassifier, **paper_settings.SETTINGS),
    ),
    "bp-lda": System(
        "BP-LDA, then linear", _on_proportions(_bp_lda, linear.tuned_ridge), _on_proportions(_bp_lda, linear.tuned_logistic)
    ),
    "gibbs-lda": System(
        "Gibbs-LDA, then linear",
        _on_proportions(_gibbs_lda, linear.tuned_ridge),
        _on_proportions(_gibbs_lda, linear.tuned_logistic),
    ),
    "slda": _chosen(
        "sLDA, variational EM", variational_slda.VariationalSLDA, variational_slda.VariationalSLDAClassifier, alpha=PRIORS
    ),
    "gibbs-slda": _chosen("Gibbs-sLDA", gibbs_slda.GibbsSLDARegressor, gibbs_slda.GibbsSLDAClassifier, alpha=GIBBS_PRIORS),
    "medlda": System(
        "Gibbs MedLDA",
        _theirs(gibbs_medlda.GibbsMedLDARegressor, {"alpha": GIBBS_PRIORS}, {"alpha": GIBBS_PRIORS[:1], "cost": [1.0]}),
        _theirs(gibbs_medlda.GibbsMedLDAClassifier, {"alpha": GIBBS_PRIORS}),
    ),
    "spectral-slda": _chosen("Spectral-sLDA", spectral_slda.SpectralSLDA, spectral_slda.SpectralSLDAClassifier, alpha0=PRIORS),
    "hybrid": _chosen("Hybrid", hybrid_slda.HybridSLDARegressor, hybrid_slda.HybridSLDAClassifier, alpha=GIBBS_PRIORS),
    "network": System(
        "network of the same size",
        _same_size(network.same_size_regressor),
        _same_size(network.same_size_classifier),
    ),
    "deep-network": System(
        "network of 200 x 200, dropout",
        _deep(network.deep_regressor),
        _deep(network.deep_classifier),
        has_topics=False,
    ),
    "linear-counts": System(
        "linear, counts",
        _linear(linear.tuned_ridge, linear.COUNTS),
        _linear(linear.tuned_logistic, linear.COUNTS),
        has_topics=False,
        is_random=False,
    ),
    "linear-tfidf": System(
        "linear, tf-idf",
        _linear(linear.tuned_ridge, linear.TFIDF),
        _linear(linear.tuned_logistic, linear.TFIDF),
        has_topics=False,
        is_random=False,
    ),
}


def make(job: Job, n_jobs: int) -> Any:
    """The estimator of a job."""
    system = SYSTEMS[job.system]
    return (system.regressor if job.row.measure == "r2" else system.classifier)(job, n_jobs)
