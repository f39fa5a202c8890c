"""The page as people use it: in a browser, with the mouse, the keyboard and a narrow screen."""

import base64
import json
import re

import numpy as np
import pytest
from mirrorlda.topics import relevant_words
from page_data import decoded_themes
from sklearn.pipeline import make_pipeline

from mirrorlda import TextVectorizer, TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.report import assembled
from mirrorlda.report.content import content

expect = pytest.importorskip("playwright.sync_api").expect

TASKS = ["regression", "two targets", "two classes", "many classes", "labels", "topics"]
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>&amp;"
GOOD = ["great", "clean", "quiet", "lovely", "view"]
BAD = ["dirty", "noisy", "rude", "cold", "smell"]
PLAIN = ["room", "staff", "street", "hotel", "day"]


def texts_and_stars(n_docs=240):
    rng = np.random.default_rng(0)
    is_good = rng.random(n_docs) < 0.5
    texts = [" ".join(rng.choice((GOOD if good else BAD) * 2 + PLAIN, 12)) for good in is_good]
    return texts, np.where(is_good, 5.0, 1.0)


def targets(task, stars):
    group = np.arange(len(stars)) % 12
    if task == "two targets":
        return np.column_stack([stars, 10 * stars])
    if task == "two classes":
        return np.where(stars > 3, "good", "bad")
    if task == "many classes":
        return np.array([f"class {stars[d]:.0f}.{group[d]}" for d in range(len(stars))])
    if task == "labels":
        return np.column_stack([stars > 3, stars < 3, group < 6]).astype(int)
    return stars if task == "regression" else None


def measure(value):
    return {"value": value, "low": value - 0.02, "high": value + 0.02}


def evaluation_of(task, outputs):
    """One as `Evaluation.as_json` gives it."""
    rng = np.random.default_rng(0)
    roc = [{"name": name, "fpr": [0.0, 0.1, 1.0], "tpr": [0.0, 0.8, 1.0], "auc": 0.85} for name in outputs]
    calibration = [{"name": n, "predicted": [0.1, 0.5, 0.9], "observed": [0.2, 0.5, 0.8], "counts": [5, 9, 5]} for n in outputs]
    if task == "regression":
        truth = rng.integers(1, 6, 50).astype(float)
        scatter = [{"name": n, "truth": truth.tolist(), "predicted": (truth + rng.normal(size=50)).tolist()} for n in outputs]
        residuals = [{"name": n, "edges": [-2.0, -1.0, 0.0, 1.0, 2.0], "counts": [3, 20, 20, 7]} for n in outputs]
        main, others, curves = "R2", ["RMSE", "MAE"], {"scatter": scatter, "residuals": residuals}
    elif task == "classification":
        counts = (rng.integers(0, 5, (len(outputs), len(outputs))) + 20 * np.eye(len(outputs), dtype=int)).tolist()
        main, others = ("AUC" if len(outputs) == 2 else "accuracy"), ["F1", "log loss", "calibration error"]
        roc, calibration = (roc[1:], calibration[1:]) if len(outputs) == 2 else (roc, calibration)
        curves = {"confusion": {"labels": outputs, "counts": counts}, "roc": roc, "calibration": calibration}
    elif task == "multilabel":
        labels = [{"name": name, "n_docs": 9, "precision": 0.5, "recall": None, "F1": 0.4} for name in outputs]
        main, others, curves = "F1", ["AUC", "log loss"], {"roc": roc, "calibration": calibration, "labels": labels}
    else:
        main, others, curves = "log-likelihood per word", ["perplexity"], {}
    measures = {main: measure(0.71)} | {name: measure(0.3) for name in others}
    baselines = (
        {} if task == "topics" else {"tf-idf, ridge regression": {main: measure(0.66)} | {n: measure(0.2) for n in others}}
    )
    return {
        "task": task,
        "n_docs": 1000,
        "outputs": outputs,
        "main": main,
        "measures": measures,
        "baselines": baselines,
        "curves": curves,
    }


@pytest.fixture(scope="module")
def models():
    texts, stars = texts_and_stars()
    kinds = {"regression": TopicRegressor, "two targets": TopicRegressor, "topics": TopicModel}
    made = {}
    for task in TASKS:
        estimator = kinds.get(task, TopicClassifier)(n_topics=4, n_epochs=4, random_state=0)
        made[task] = make_pipeline(TextVectorizer(bigrams=False), estimator).fit(texts, targets(task, stars))
    return made


@pytest.fixture
def data_of(models):
    """data_of(task, **changes) -> the data of a page, an evaluation and documents in it."""

    def data_of(task, **changes):
        texts, _ = texts_and_stars(20)
        data = content(models[task], documents=texts, title=f"The page of {task}", configuration={"n_docs": 240, "alpha": 1.05})
        return data | {"evaluation": evaluation_of(data["task"], data["outputs"])} | changes

    return data_of


@pytest.fixture
def open_data(open_page, tmp_path):
    """open_data(data, **context) -> the open page of this data."""

    def open_data(data, **context):
        path = tmp_path / "page.html"
        path.write_text(assembled(data), encoding="utf-8")
        context = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"} | context
        return open_page(path, **context)

    return open_data


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.slow
def test_every_task_has_its_sections_on_a_narrow_dark_screen(task, data_of, open_data):
    data = data_of(task)
    page = open_data(data, viewport={"width": 360, "height": 740}, color_scheme="dark")
    assert page.title() == page.locator("h1").text_content() == data["title"]
    assert page.locator("h2").all_text_contents() == ["Try it", "Topics", "How good it is", "How it was made"]
    assert "on 1,000 held-out documents (95\u00a0% interval 0.690 to 0.730)" in page.locator(".lead").text_content()
    assert page.locator("article.topic").count() == 4
    assert page.locator("#topics .effect").count() == (0 if task == "topics" else 4)
    page.wait_for_selector("svg.map a")
    for details in page.locator(".more summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    # Light on dark.
    paper, ink = page.evaluate("['backgroundColor', 'color'].map((name) => getComputedStyle(document.body)[name])")
    assert max(map(int, re.findall(r"\d+", paper))) < 60 < 200 < min(map(int, re.findall(r"\d+", ink)))
    charts = page.locator("#quality svg[role=img]")
    assert charts.count() >= (2 if task == "topics" else 4)
    assert all(chart.get_attribute("aria-label") for chart in charts.all())


def test_sentence_names_the_best_baseline(data_of, open_data):
    page = open_data(data_of("regression"))
    assert page.locator(".lead").text_content() == (
        "Predicts a number from text: R² 0.710 on 1,000 held-out documents (95\u00a0% interval 0.690 to 0.730), "
        "where tf\u2011idf with ridge regression has 0.660."
    )
    # R2 is best where it is large, errors where they are small.
    best = page.locator(".measures .best").all_text_contents()
    assert [text.split()[0] for text in best] == ["0.710", "0.200", "0.200"]


def test_slider_orders_words_as_relevant_words_does(models, data_of, open_data):
    data = data_of("regression")
    page, shares, names = open_data(data), models["regression"][-1].topic_shares_, data["model"]["words"]
    for relevance in (1.0, 0.0, 0.5):
        # Words that differ by less than the page's rounding stand in its order.
        expected = relevant_words(decoded_themes(data).T, shares, names, n_words=12, relevance=relevance)
        page.locator("#relevance").fill(str(relevance))
        for topic, words in enumerate(expected):
            expect(page.locator(f"#topic-{topic} .words li")).to_have_text(words)


@pytest.mark.slow
def test_search_shows_where_a_word_is(models, data_of, open_data):
    page = open_data(data_of("regression"))
    vectorizer, model = (step for _, step in models["regression"].steps)
    dirty = model.components_[:, list(vectorizer.get_feature_names_out()).index("dirty")]
    overall = model.topic_shares_ @ dirty / model.topic_shares_.sum()
    page.locator("#search").fill("dirt")
    page.locator(".found-in button").click()
    assert page.locator("#search").input_value() == "dirty"
    found = {int(node.get_attribute("id").removeprefix("topic-")) for node in page.locator(".topic.searched").all()}
    assert found == set(np.flatnonzero(dirty > overall).tolist())
    first = page.locator(".found-in li a").first
    assert first.text_content() == f"Topic {dirty.argmax()}"
    first.click()
    assert page.evaluate("document.activeElement.id") == f"topic-{dirty.argmax()}"
    page.locator("#search").fill("xyz")
    assert page.locator(".found-in").text_content() == "The page has no word like “xyz”."
    page.locator("#search").fill("")
    assert page.locator(".topic.searched").count() == 0


def test_typing_predicts(models, data_of, open_data):
    page = open_data(data_of("regression"))
    text = "A great, clean room; dirty street"
    page.locator("#text").fill(text)
    expect(page.locator(".mirror span")).to_have_text(["great", "clean", "room", "dirty", "street"])
    shown = float(page.locator("#prediction").text_content())
    assert shown == pytest.approx(models["regression"].predict([text])[0], abs=0.011)
    analysis = page.evaluate(
        "text => mirrorlda.decode(JSON.parse(document.getElementById('data').textContent)).analyse(text)", arg=text
    )
    assert shown == pytest.approx(analysis["values"][0], abs=0.0051)
    # Every known word has the colour of its sign, and says its effect where the cursor is.
    kinds = {span.text_content(): span.get_attribute("class").split()[0] for span in page.locator(".mirror span").all()}
    effects = {text[token["begin"] : token["end"]]: token["effect"] for token in analysis["tokens"]}
    assert {word: "negative" if effect < 0 else "positive" for word, effect in effects.items()} == kinds
    assert page.locator(".mirror").text_content().rstrip("\u200b") == text
    page.evaluate("document.getElementById('text').setSelectionRange(3, 3)")
    expect(page.locator("#word")).to_contain_text("great")
    strongest = page.locator(".strongest li .named").first.text_content()
    assert strongest == max(effects, key=lambda word: abs(effects[word])).lower()
    expect(page.locator("#spoken")).to_contain_text("Prediction: ")


def analysed(page, text):
    """What the page's model says of a text, with the effects of its topics."""
    function = """text => {
        const model = mirrorlda.decode(JSON.parse(document.getElementById('data').textContent)), analysis = model.analyse(text);
        analysis.leaveOut.forEach(fillIn => fillIn());
        return JSON.parse(JSON.stringify(analysis));
    }"""
    return page.evaluate(function, arg=text)


def number_of(text):
    return float(re.search(r"[\d,.]+", text)[0].replace(",", "")) * (-1 if "\N{MINUS SIGN}" in text else 1)


@pytest.mark.parametrize("task", ["regression", "two classes", "many classes", "labels"])
def test_effects_of_topics_and_their_overlap_add_up(task, data_of, open_data):
    page = open_data(data_of(task))
    text = "great clean quiet room, dirty cold street"
    page.locator("#text").fill(text)
    expect(page.locator("#counts")).to_contain_text("7 words")
    found = analysed(page, text)
    strongest = max(found["topics"], key=lambda topic: abs(topic["effect"]))
    first = page.locator(".mixture li").first
    expect(first.locator("a")).to_have_text(f"Topic {strongest['topic']}")
    rows = [number_of(row.locator(".line > .number").text_content()) for row in page.locator(".mixture li").all()]
    assert rows[0] == pytest.approx(strongest["effect"], rel=0.01)
    overlap = page.locator(".mixture li").last
    assert "Overlap" in overlap.text_content()
    assert rows[-1] == pytest.approx(found["overlap"], rel=0.01, abs=0.005)
    total = found["value"] - found["empty"]
    assert number_of(page.locator(".sum strong").text_content()) == pytest.approx(total, rel=0.01, abs=0.005)
    assert sum(rows) == pytest.approx(total, abs=0.01 * len(rows))


@pytest.mark.parametrize("task", ["regression", "topics"])
def test_a_topic_shows_its_words_in_the_text(task, data_of, open_data):
    page = open_data(data_of(task))
    text = "great clean dirty street noisy"
    page.locator("#text").fill(text)
    expect(page.locator("#counts")).to_contain_text("5 words")
    tokens = analysed(page, text)["tokens"]
    row = page.locator(".mixture li[data-of]").first
    topic = int(row.get_attribute("data-of"))
    assert page.locator(".mirror .of").count() == 0
    row.hover()
    assert page.locator(".mirror .of").all_text_contents() == [
        text[token["begin"] : token["end"]] for token in tokens if token["topic"] == topic
    ]
    page.locator("h1").hover()
    assert page.locator(".mirror .of").count() == 0
    if task == "regression":
        page.evaluate("document.getElementById('text').setSelectionRange(1, 1)")
        expect(page.locator("#word")).to_contain_text(f"in topic {tokens[0]['topic']}")


@pytest.mark.slow
def test_texts_without_known_words_say_so(data_of, open_data):
    page = open_data(data_of("two classes", documents=None))
    assert "No text yet" in page.locator(".state").text_content()
    page.locator("#text").fill("zzz yyy")
    expect(page.locator(".state")).to_contain_text("No word of this text is known")
    page.locator("#text").fill("lovely")
    expect(page.locator(".state")).to_have_count(0)
    assert page.locator("#prediction").text_content().endswith("good")


def test_a_class_is_chosen_to_explain(data_of, open_data):
    data = data_of("many classes")
    page = open_data(data)
    page.locator("#explained").select_option(label=data["outputs"][2])
    assert (
        page.locator(".strongest h3").text_content() == f"Words with the largest effect on the log odds of {data['outputs'][2]}"
    )
    page.locator("#row").select_option(label=data["outputs"][1])
    assert shown_topics(page) == sorted(range(4), key=lambda topic: -data["topics"]["effects"][1][topic])
    page.locator("#sort").select_option("share")
    assert shown_topics(page) == sorted(range(4), key=lambda topic: -data["topics"]["shares"][topic])


@pytest.mark.slow
def test_keyboard_reaches_everything(data_of, open_data):
    page = open_data(data_of("many classes"))
    page.wait_for_selector("svg.map a")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = "a => a.id || a.closest('svg, .strip')?.getAttribute('class') || a.className || a.tagName"
        reached.append(page.evaluate(f"({name})(document.activeElement)"))
        if reached[-1] == "map":
            page.keyboard.press("ArrowDown")
            topic = page.evaluate("document.activeElement.dataset.topic")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.id") == f"topic-{topic}"
            assert page.locator(f"#topic-{topic}.chosen").count() == 1
    assert {
        "skip",
        "theme",
        "text",
        "quiet",
        "explained",
        "strip",
        "sort",
        "row",
        "relevance",
        "search",
        "map",
        "SUMMARY",
        "curve",
    } <= set(reached)
    unlabelled = "node => !node.labels?.length && !node.getAttribute('aria-label')"
    assert not page.evaluate(f"[...document.querySelectorAll('input, select, textarea')].some({unlabelled})")


def test_theme_can_be_changed(data_of, open_data):
    page = open_data(data_of("topics"), color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("#theme").click()
    assert page.evaluate(background) != light
    page.locator("#theme").click()
    assert page.evaluate(background) == light


def test_what_data_says_is_text(data_of, open_data):
    data = data_of("many classes")
    text = json.dumps(data).replace("class 1.0", json.dumps(HOSTILE)[1:-1]).replace('"lovely"', json.dumps(HOSTILE))
    data = json.loads(text) | {"title": HOSTILE, "configuration": {HOSTILE: HOSTILE}}
    document = {"text": HOSTILE, "share": 0.5, "truth": HOSTILE, "prediction": HOSTILE}
    data["documents"] = [[document] for _ in range(4)]
    data["evaluation"]["baselines"] = {HOSTILE: data["evaluation"]["measures"]}
    assert HOSTILE in data["outputs"]
    page = open_data(data)
    for details in page.locator(".more summary").all():
        details.click()
    page.locator("#search").fill(HOSTILE)
    page.locator("#text").fill(HOSTILE)
    expect(page.locator(".mirror")).to_contain_text("window.hacked")
    assert page.title() == page.locator("h1").text_content() == HOSTILE
    assert HOSTILE in page.locator("blockquote").first.text_content()
    assert HOSTILE in page.locator(".confusion").text_content()
    assert page.evaluate("[window.hacked ?? null, document.querySelectorAll('img').length, document.scripts.length]") == [
        None,
        0,
        2,
    ]


def test_without_evaluation_documents_and_text(data_of, open_data):
    data = data_of("two classes", evaluation=None, documents=None, history={}, n_docs=None)
    data["model"]["definition"] = None
    page = open_data(data)
    assert page.locator("h2:visible").all_text_contents() == ["Topics", "How it was made"]
    assert page.locator("#sections a").all_text_contents() == ["Topics", "Making"]
    assert page.locator(".lead").text_content() == "Tells good from bad by the text, with 4 topics."
    assert page.locator("blockquote").count() == 0


@pytest.mark.slow
def test_how_it_was_made_is_a_clean_table(data_of, open_data):
    made = {"files": "a.csv, b.csv", "keep-case": False, "seed_words": None, "n_epochs": 2}
    data = data_of("regression", configuration=made, other_settings={"warm_start": True}, n_docs=27001, seconds=200.4)
    page = open_data(data)
    assert page.locator(".facts dt").all_text_contents() == ["topics", "words", "documents"]
    assert page.locator(".facts dd").last.text_content() == "27,001"
    rows = dict(row.locator("th, td").all_text_contents() for row in page.locator("#making .rows").first.locator("tr").all())
    assert rows == {
        "package": f"mirrorlda {data['version']}",
        "topics": "4",
        "words": "15",
        "documents learned from": "27,001",
        "time to learn": "3 min 20 s",
        "files": "a.csv, b.csv",
        "keep case": "no",
        "seed words": "\N{EN DASH}",
        "epochs": "2",
    }
    assert page.locator(".settings table").is_hidden()
    page.locator(".settings summary").click()
    assert page.locator(".settings td").all_text_contents() == ["yes"]


def shown_topics(page, selector="article.topic:visible"):
    return [int(node.get_attribute("id").removeprefix("topic-")) for node in page.locator(selector).all()]


def test_topics_with_a_small_share_are_folded_away(data_of, open_data):
    data = data_of("regression")
    data["topics"]["shares"] = [0.0149, 0.6, 0.3701, 0.015]
    page = open_data(data)
    assert page.locator(".small-topics summary").first.text_content() == "1 topic has less than 1.5\u00a0% of the corpus"
    assert sorted(shown_topics(page)) == [1, 2, 3]
    page.wait_for_selector("svg.map a")
    assert page.locator(".strip button").count() == page.locator("svg.map a").count() == 4
    page.locator("svg.map a[data-topic='0']").press("Enter")
    assert sorted(shown_topics(page)) == [0, 1, 2, 3]
    assert page.evaluate("document.activeElement.id") == "topic-0"


@pytest.mark.slow
def test_of_many_topics_those_with_a_usual_share_are_not_small(open_data):
    texts, stars = texts_and_stars()
    estimator = TopicRegressor(n_topics=60, n_epochs=1, random_state=0)
    data = content(make_pipeline(TextVectorizer(), estimator).fit(texts, stars))
    data["topics"]["shares"] = [0.01] * 58 + [0.417, 0.003]
    page = open_data(data)
    assert shown_topics(page, ".small-topics article") == [59]
    assert page.locator(".small-topics > summary").text_content() == "1 topic has less than 0.5\u00a0% of the corpus"


@pytest.mark.slow
def test_topics_are_ordered_by_the_effect_that_is_shown(data_of, open_data):
    data = data_of("regression")
    data["topics"] |= {"effects": [[0.5, 2.0, -1.0, 1.0]], "order": [0, 1, 2, 3], "shares": [0.25] * 4}
    assert shown_topics(open_data(data)) == [1, 3, 0, 2]
    data = data_of("labels")
    data["topics"] |= {"effects": [[1, 2, 0, 0], [0, 3, 1, 0], [0, 0, 0, 4]], "order": [0, 1, 2, 3], "shares": [0.25] * 4}
    assert shown_topics(open_data(data)) == [0, 1, 2, 3]
    data["topics"]["effects"] = [[0, 2, 0, 3], [4, 0, 1, 0], [0, 0, 0, 0]]
    assert shown_topics(open_data(data)) == [3, 1, 0, 2]


def fills(page):
    """The colours of topics, on the strip and on the map."""
    page.wait_for_selector("svg.map a")
    strip = "node => [node.dataset.topic, getComputedStyle(node).backgroundColor]"
    circle = "node => [node.dataset.topic, getComputedStyle(node.firstChild).fill]"
    return [
        dict(page.evaluate(f"[...document.querySelectorAll('{where}')].map({what})"))
        for where, what in ((".strip button", strip), ("svg.map a", circle))
    ]


@pytest.mark.slow
def test_topics_have_the_colour_of_the_class_they_speak_for(data_of, open_data):
    data = data_of("many classes")
    effects = np.zeros((len(data["outputs"]), 4))
    effects[[3, 3, 0, 7], range(4)] = [2, 1, 1, 1.5]
    data["topics"] |= {"effects": effects.tolist(), "shares": [0.25] * 4}
    page = open_data(data)
    names = [data["outputs"][row] for row in (0, 3, 7)]
    assert page.locator(".colours li").all_text_contents() == names
    strip, on_map = fills(page)
    assert strip == on_map
    assert strip["0"] == strip["1"]
    assert len(set(strip.values())) == 3
    legend = page.evaluate("[...document.querySelectorAll('.colours i')].map((i) => getComputedStyle(i).backgroundColor)")
    assert legend == [strip["2"], strip["0"], strip["3"]]
    # One class alone: by the effect.
    page.locator("#row").select_option(label=names[1])
    assert page.locator(".colours").is_hidden()
    assert len(set(fills(page)[0].values())) == 3
    assert "log probability of " + names[1] in page.locator("#topic-0 .effect").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_twenty_colours_differ_from_each_other_and_the_paper(scheme, data_of, open_data):
    page = open_data(data_of("topics"), color_scheme=scheme)
    painted = """colours => colours.map((colour) => {
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        document.body.style.color = colour;
        context.fillStyle = getComputedStyle(document.body).color;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    })"""
    hues = page.evaluate("Array.from({ length: 20 }, (_, i) => charts.hue(i, 20))")
    colours = np.array(page.evaluate(painted, [*hues, "var(--paper)"]), float)
    distances = np.linalg.norm(colours[:, None] - colours, axis=2) + 999 * np.eye(21)
    assert distances.min() > 40
    assert distances[-1].min() > 60
    assert np.diag(distances[:-1], 1).min() > 60


@pytest.mark.slow
def test_units_are_said_with_effects(data_of, open_data):
    for task, unit in (("two classes", "log odds of good"), ("labels", "log odds of "), ("regression", "on the prediction")):
        assert unit in open_data(data_of(task)).locator(".effect").first.text_content()
    data = data_of("regression")
    data["topics"] |= {"effect_names": ["stars"], "effects": [[1.234, 0.0004, -2.0, 0.5]], "shares": [0.25] * 4}
    page = open_data(data | {"outputs": ["stars"]})
    assert page.locator(".effect").all_text_contents() == [
        "+1.23 stars",
        "+0.50 stars",
        "±0.00 stars",
        "\N{MINUS SIGN}2.00 stars",
    ]
    kinds = [node.get_attribute("class").split()[-1] for node in page.locator(".effect").all()]
    assert kinds == ["up", "up", "even", "down"]
    colour = "node => getComputedStyle(node).color"
    assert page.locator(".effect.even").evaluate(colour) == page.locator("body").evaluate(colour)


def test_ranges_of_effects_are_drawn_and_said(data_of, open_data):
    data = data_of("regression")
    ends = [[[0.5, -0.2, -1.27, 0.0]], [[1.5, 0.2, -0.004, 0.0]]]
    data["topics"] |= {"effects": [[1.0, 0.1, -0.3, 0.0]], "ranges": ends, "shares": [0.25] * 4}
    page = open_data(data)
    shown = {topic: page.locator(f"#topic-{topic} .range-text").text_content() for topic in range(4)}
    assert shown == {
        0: "8 of 10 texts: 0.50 to 1.50",
        1: "8 of 10 texts: \N{MINUS SIGN}0.20 to 0.20",
        2: "8 of 10 texts: \N{MINUS SIGN}1.27 to 0.00",
        3: "8 of 10 texts: 0.00 to 0.00",
    }
    # All on one axis, from the lowest end to the highest.
    track, line = (page.locator(f"#topic-0 header {part}").bounding_box() for part in (".track", ".range"))
    unit = track["width"] / (1.5 + 1.27)
    assert line["x"] - track["x"] == pytest.approx(unit * (0.5 + 1.27), abs=1)
    assert line["width"] == pytest.approx(unit, abs=1)


def test_words_that_move_the_prediction_stand_with_their_topic(data_of, open_data):
    data = data_of("many classes")
    effects = np.zeros((len(data["outputs"]), 4))
    effects[[3, 3, 0, 7], range(4)] = [2, 1, 1, 1.5]
    moving = {"raising": [["quiet"], [], ["a", "b"], []], "lowering": [["loud", "smell"], [], [], ["c"]]}
    data["topics"] |= {"effects": effects.tolist(), "shares": [0.25] * 4, **moving}
    page = open_data(data)
    assert page.locator("#topic-0 .moving").all_text_contents() == ["raise quiet", "lower loud smell"]
    assert page.locator("#topic-1 .moving").count() == 0
    assert page.locator("#topic-3 .moving").all_text_contents() == ["lower c"]
    # They are about the class that the topic speaks for most, and no other.
    page.locator("#row").select_option(label=data["outputs"][3])
    assert page.locator("#topic-0 .moving").count() == 2
    assert page.locator("#topic-2 .moving").count() == 0


def test_a_model_of_an_earlier_version_says_what_its_effects_are(data_of, open_data):
    data = data_of("regression")
    assert "how far its words move the prediction of a text" in open_data(data).locator("#topics > .note").text_content()
    data["topics"]["ranges"] = None
    page = open_data(data)
    assert "a text of this topic alone" in page.locator("#topics > .note").text_content()
    assert "a text of this topic alone" in page.locator(".glossary").text_content()
    assert page.locator(".range, .range-text").count() == 0


@pytest.mark.slow
def test_what_people_read_comes_from_the_themes(models, data_of, open_data):
    """Themes that have nothing to do with what infers: words and the search follow them, the prediction does not."""
    data = data_of("regression")
    words, n_topics = data["model"]["words"], 4
    own = [words.index(word) for word in ("great", "dirty", "room", "street")]
    depth = np.full((len(words), n_topics), 255, np.uint8)
    depth[own, range(n_topics)] = 0
    text = "great quiet dirty"
    before = analysed(open_data(data), text)
    data["model"]["themes"] |= {"depth": base64.b64encode(depth.tobytes()).decode(), "deepest": 9.0}
    page = open_data(data)
    assert page.locator("#topic-1 .words li").first.text_content() == "dirty"
    page.locator("#search").fill("street")
    assert page.locator(".found-in li a").first.text_content() == "Topic 3"
    after = analysed(page, text)
    assert after["theta"] == before["theta"]
    assert after["value"] == before["value"]
    topics = {word["word"]: word["topic"] for word in after["words"]}
    assert (topics["great"], topics["dirty"]) == (0, 1)


def test_topics_with_the_same_first_word_have_names_of_their_own(data_of, open_data):
    data = data_of("regression")
    data["topics"]["shares"] = [0.25] * 4
    n_words = len(data["model"]["words"])
    depth = np.full((n_words, 4), 200, np.uint8)
    depth[0, :] = [0, 0, 255, 255]
    depth[1, :] = [255, 20, 255, 255]
    data["model"]["themes"] |= {"depth": base64.b64encode(depth.tobytes()).decode(), "deepest": 9.0}
    page = open_data(data)
    names = page.locator(".strip button").all_text_contents()
    assert len(set(names)) == 4


@pytest.mark.slow
def test_stars_are_between_what_has_learned(data_of, open_data):
    data = data_of("two classes")
    useless = {name: measure(0.99) for name in data["evaluation"]["measures"]} | {"calibration error": measure(0.0)}
    data["evaluation"]["baselines"] |= {"most frequent class (100 documents)": useless}
    page = open_data(data)
    titles = page.locator(".measures thead th").all_text_contents()
    assert titles[-1].startswith("most frequent class")
    assert page.locator(".measures tr > :last-child.best").count() == 0
    assert page.locator(".measures .best").count() == 4
    del data["evaluation"]["baselines"]["tf-idf, ridge regression"]
    assert open_data(data).locator(".measures .best").count() == 0


def test_measures_alone_do_not_fill_the_screen(data_of, open_data):
    data = data_of("regression")
    data["evaluation"] |= {"baselines": {}, "notes": ["the notes of a model", "3 documents left out."]}
    page = open_data(data)
    assert page.locator(".measures").evaluate("node => node.offsetWidth") < 600
    note = page.locator("#quality > .note").text_content()
    assert note.endswith("interval. The notes of a model. 3 documents left out.")


def test_intervals_are_seen_beside_their_dots(data_of, open_data):
    data = data_of("two classes")
    narrow = {"AUC": {"value": 0.9, "low": 0.899, "high": 0.901}}
    data["evaluation"]["measures"] |= narrow
    page = open_data(data)
    page.wait_for_selector(".interval.main")
    dot = page.locator(".interval.main circle").bounding_box()
    caps = [cap.bounding_box() for cap in page.locator(".interval.main .cap").all()]
    assert len(caps) == 2
    assert all(cap["y"] < dot["y"] and cap["y"] + cap["height"] > dot["y"] + dot["height"] for cap in caps)


@pytest.mark.parametrize(
    ("task", "score"),
    [
        ("regression", "R²"),
        ("many classes", "accuracy"),
        ("labels", "share of the log loss explained (D²)"),
        ("topics", "log-likelihood per word"),
    ],
)
def test_the_score_while_learning_has_a_name(task, score, data_of, open_data):
    history = {"loss": [3, 2], "score": [0.1, 0.2], "validation_score": [0.1, 0.15]}
    page = open_data(data_of(task, history=history))
    assert page.locator("#quality h3").last.text_content() == f"Score while learning: {score}"
    assert page.locator(".legend span").all_text_contents() == ["training", "held-out"]
