"""Models and explanations as notebooks show them."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from mirrorlda.datasets import make_topics
from mirrorlda.explain import explain
from mirrorlda.topics import effects, relevant_words
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from mirrorlda import TextVectorizer, TopicClassifier, TopicModel, TopicRegressor


class Reader(HTMLParser):
    """Rows of cells of all tables, tags by name, text; every tag that is opened is closed in its turn."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.rows, self.text = [], set(), [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def fitted(kind, n_topics=3, names=None, **options):
    response = {"n_outputs": 1 if kind == "number" else 2} if "number" in kind else {}
    data = make_topics(n_docs=150, n_words=30, n_topics=3, random_state=0, **response)
    X = data.X if names is None else pd.DataFrame(data.X.toarray(), columns=names)
    options = {"n_topics": n_topics, "n_epochs": 2, "random_state": 0, **options}
    if kind == "topics":
        return TopicModel(**options).fit(X)
    if "number" in kind:
        return TopicRegressor(**options).fit(X, data.y)
    numbers = np.arange(150) % 3
    y = {"classes": np.array(["<i>one</i>", "b & c", "d"])[numbers], "two": numbers > 0, "labels": np.eye(3, dtype=int)[numbers]}[
        kind
    ]
    return TopicClassifier(**options).fit(X, y)


@pytest.mark.parametrize("kind", ["topics", "number", "numbers", "two", "classes", "labels"])
def test_every_estimator_shows_its_topics(kind):
    model = fitted(kind)
    page = Reader(model._repr_html_())
    assert len(page.rows) == 4
    assert "script" not in page.tags
    assert (
        f"{type(model).__name__}: 3 topics, 30 words, training score {model.history_['score'][-1]:.3f} after 2 epochs"
        in page.text
    )
    has_effects = kind != "topics"
    assert any("effect" in title for title in page.rows[0]) == has_effects
    assert ("strongest on" in page.rows[0]) == (kind in ("numbers", "classes", "labels"))
    for row in page.rows[1:]:
        topic = int(row[0])
        assert row[1] == f"{model.topic_shares_[topic]:.1%}"
        words = relevant_words(model.components_, model.topic_shares_, n_words=8)[topic]
        assert row[-1] == ", ".join(f"word {number}" for number in words)
        if has_effects:
            names, values = effects(model)
            output = row[3] if len(names) > 1 else names[0]
            effect = values[names.index(output), topic]
            assert float(row[-4]) == pytest.approx(effect, rel=0.01, abs=0.01)
            low, high = model.topic_effects_[1:, names.index(output), topic]
            assert [float(end) for end in row[-2].split(" to ")] == pytest.approx([low, high], rel=0.01, abs=0.01)
    assert model._repr_mimebundle_() == {"text/plain": repr(model), "text/html": model._repr_html_()}


def test_effects_fall_and_their_bars_go_both_ways():
    page = fitted("number")._repr_html_()
    values = [float(row[3]) for row in Reader(page).rows[1:]]
    assert values == sorted(values, reverse=True)
    assert page.count('class="up"') == sum(value >= 0 for value in values)
    assert page.count('class="down"') == sum(value < 0 for value in values) > 0


def test_names_are_escaped():
    names = [f"<script>alert({number})</script>" for number in range(30)]
    page = fitted("classes", names=names)._repr_html_()
    assert "script" not in Reader(page).tags
    assert "<script>alert(" in Reader(page).text
    assert "<i>one</i>" in Reader(page).text


def test_of_many_topics_those_with_the_strongest_effects_are_shown():
    model = fitted("number", n_topics=30)
    page = Reader(model._repr_html_())
    strongest = np.argsort(-np.abs(effects(model)[1][0]), kind="stable")[:20]
    assert {int(row[0]) for row in page.rows[1:]} == set(strongest.tolist())
    assert "and 10 more topics" in page.text


def test_words_that_move_the_prediction_stand_beside_the_others():
    page = Reader(fitted("number", names=[f"word{number}" for number in range(30)])._repr_html_())
    assert page.rows[0][-3:] == ["words", "raise", "lower"]
    assert any(row[-2] for row in page.rows[1:])


def test_a_model_of_an_earlier_version_has_no_ranges():
    model = fitted("number")
    del model.topic_effects_
    page = Reader(model._repr_html_())
    assert "10 % to 90 %" not in page.rows[0]
    assert len(page.rows) == 4


def test_an_explanation_shows_what_topics_do_together():
    texts = ["clean quiet room", "dirty noisy room"] * 30
    model = make_pipeline(TextVectorizer(), TopicClassifier(2, random_state=0)).fit(texts, ["good", "bad"] * 30)
    found = explain(model, "clean but noisy room")
    assert f"overlap of topics {found.overlap:+.3g}" in Reader(found._repr_html_()).text


def test_a_constant_target_has_no_effects():
    data = make_topics(n_docs=60, n_words=20, n_topics=2, random_state=0)
    model = TopicRegressor(2, n_epochs=1, random_state=0).fit(data.X, np.full(60, 3.0))
    page = Reader(model._repr_html_())
    assert {row[3] for row in page.rows[1:]} == {"0.00"}
    assert "after 1 epoch\n" in page.text


def test_the_validation_score_is_shown_where_there_is_one():
    model = fitted("number", early_stopping=True, validation_fraction=0.3)
    assert f"validation score {model.history_['validation_score'][-1]:.3f}" in Reader(model._repr_html_()).text


def test_parameters_are_those_that_were_given():
    page = Reader(fitted("number")._repr_html_())
    assert {"details", "summary"} <= page.tags
    assert "TopicRegressor(n_epochs=2, n_topics=3, random_state=0)" in page.text


def test_before_a_fit_it_is_scikit_learns_page():
    model = fitted("number")
    assert "sk-" in clone(model)._repr_html_()
    assert "sk-" in clone(model)._repr_mimebundle_()["text/html"]
    assert "sk-" not in model._repr_html_()
    assert "sk-" in make_pipeline(TextVectorizer(), model)._repr_html_()


def test_scikit_learns_setting_for_text_is_kept():
    model = fitted("number")
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_an_explanation_shades_the_words_of_its_text():
    texts = ["clean & quiet <b>room</b>", "dirty & noisy <b>room</b>"] * 30
    model = make_pipeline(TextVectorizer(), TopicClassifier(2, random_state=0)).fit(texts, ["<good>", "<bad>"] * 30)
    found = explain(model, texts[0])
    page = Reader(found._repr_html_())
    assert "b" in page.tags
    assert texts[0] in page.text
    assert f"<good>: log odds {found.value:.4g}" in page.text
    assert page.rows[1][0] == found.words[0].word
    assert "rgba" in found._repr_html_().split("</style>")[1]
    without = explain(model, model[0].transform(texts[:1]), leave_one_out=False)
    assert "left out" not in Reader(without._repr_html_()).text
    assert "rgba" not in without._repr_html_().split("</style>")[1]
    Reader(explain(model, "")._repr_html_())
