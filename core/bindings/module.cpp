// The core as Python sees it: arrays in, arrays out. Input was checked where it entered the package; here only what memory safety needs.
#include "bindings/module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "bindings/arrays.hpp"
#include "corpus/word_dropout.hpp"
#include "likelihood/likelihood.hpp"
#include "method/engine.hpp"

using namespace nanobind::literals;

namespace mirrorlda {
namespace {

// An estimator of the documents' log-likelihoods, with the number of its particles or samples.
using Likelihood = void(const WholeCounts&, const GivenTopics&, int, uint64_t, double*, int);

void bind_likelihood(nb::module_& m, const char* name, Likelihood* estimate) {
  m.def(
      name,
      [estimate](Array<const double, 2> phi, Array<const double, 1> alpha, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices,
                 Array<const int32_t, 1> counts, Array<const int64_t, 1> documents, int n_draws, uint64_t seed, int n_threads) {
        check_documents(indptr, indices, documents);
        require(indices.shape(0) == counts.shape(0) && alpha.shape(0) == phi.shape(1) && phi.shape(1) > 0 && n_draws > 0 && n_threads > 0,
                "likelihood: counts, alpha, n_topics, n_draws or n_threads");
        for (size_t d = 0; d < documents.shape(0); ++d) {
          const int64_t begin = indptr(documents(d)), size = indptr(documents(d) + 1) - begin;
          check_range(indices.data() + begin, size, int64_t(phi.shape(0)), "likelihood: a word is out of range");
          check_range(counts.data() + begin, size, int64_t(1) << 31, "likelihood: a count is negative");
        }
        auto out = new_array<double>({documents.shape(0)});
        const WholeCounts whole{indptr.data(), indices.data(), counts.data(), documents.data(), int64_t(documents.shape(0))};
        {
          nb::gil_scoped_release release;
          estimate(whole, {phi.data(), alpha.data(), int(phi.shape(1))}, n_draws, seed, out.data(), n_threads);
        }
        return out;
      },
      "phi"_a.noconvert(), "alpha"_a.noconvert(), "indptr"_a, "indices"_a, "counts"_a.noconvert(), "documents"_a, "n_draws"_a, "seed"_a,
      "n_threads"_a);
}

template <class T>
struct BoundEngine {
  Engine<T> engine;
  // What `decode` works in, so that it leaves the trace of `forward` alone.
  Engine<T> decoder;
  // Kept alive from forward to reverse, which reads them again.
  std::vector<nb::object> inputs;
  bool has_trace = false, has_objective = false;

  Numpy<T> forward(Array<const T, 2> phi, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> counts,
                   Array<const int64_t, 1> documents, Array<const T, 1> alpha, int n_layers, int rule, double tol,
                   std::optional<Array<const double, 2>> steps, std::optional<Array<const T, 2>> frame, bool keep, bool objective,
                   int n_threads) {
    check_documents(indptr, indices, documents);
    for (size_t d = 0; d < documents.shape(0); ++d)
      check_range(indices.data() + indptr(documents(d)), indptr(documents(d) + 1) - indptr(documents(d)), int64_t(phi.shape(0)),
                  "a word is out of range");
    require(indices.shape(0) == counts.shape(0), "indices and counts differ in length");
    const size_t n_docs = documents.shape(0), n_topics = phi.shape(1);
    require(alpha.shape(0) == n_topics && n_topics > 0 && n_layers >= 1 && n_threads > 0, "alpha, n_topics, n_layers or n_threads");
    require(rule >= int(StepRule::l1) && rule <= int(StepRule::given), "rule is unknown");
    require(tol >= 0 && tol < 1, "tol must be at least 0 and below 1");
    require((rule == int(StepRule::given)) == steps.has_value(), "steps are for the given rule only");
    require(!steps || (steps->shape(0) == n_docs && steps->shape(1) == size_t(n_layers)), "steps must be (n_docs, n_layers)");
    require(!frame || (frame->shape(0) == 2 && frame->shape(1) == n_topics), "frame must be (2, n_topics)");
    Numpy<T> theta = new_array<T>({n_docs, n_topics});
    has_trace = has_objective = false;
    inputs.clear();
    if (keep)
      for (nb::object o : {nb::cast(phi), nb::cast(indptr), nb::cast(indices), nb::cast(counts), nb::cast(documents)}) inputs.push_back(o);
    if (keep && steps) inputs.push_back(nb::cast(*steps));
    const Batch<T> batch{indptr.data(), indices.data(), counts.data(), documents.data(), int64_t(n_docs), int64_t(phi.shape(0))};
    const T* const scale = frame ? frame->data() : nullptr;
    const Topics<T> topics{phi.data(),     scale, scale ? scale + n_topics : nullptr, int(n_topics), alpha.data(), n_layers,
                           StepRule(rule), tol,   objective,                          steps ? steps->data() : nullptr};
    {
      nb::gil_scoped_release release;
      engine.forward(batch, topics, keep, n_threads, theta.data());
    }
    has_trace = keep;
    has_objective = keep && objective;
    return theta;
  }

  // The gradient, of documents with these weights, is a view of this engine's memory, valid until it decodes again.
  static nb::tuple decode(nb::object self, Array<const T, 2> phi, std::optional<Array<const T, 2>> frame, Array<const int64_t, 1> indptr,
                          Array<const int32_t, 1> indices, Array<const T, 1> counts, Array<const int64_t, 1> documents,
                          Array<const T, 2> theta, std::optional<Array<const T, 1>> weights, std::optional<Array<const int32_t, 1>> rows,
                          int n_threads, int64_t per_block) {
    Engine<T>& engine = nb::cast<BoundEngine&>(self).decoder;
    check_documents(indptr, indices, documents);
    for (size_t d = 0; d < documents.shape(0); ++d)
      check_range(indices.data() + indptr(documents(d)), indptr(documents(d) + 1) - indptr(documents(d)), int64_t(phi.shape(0)),
                  "a word is out of range");
    require(indices.shape(0) == counts.shape(0), "indices and counts differ in length");
    const size_t n_docs = documents.shape(0), n_topics = phi.shape(1);
    require(n_topics > 0 && n_threads > 0, "n_topics or n_threads");
    require(!frame || (frame->shape(0) == 2 && frame->shape(1) == n_topics), "frame must be (2, n_topics)");
    require(theta.shape(0) == n_docs && theta.shape(1) == n_topics, "theta must be (n_docs, n_topics)");
    require(weights.has_value() == rows.has_value(), "weights are for the gradient of rows");
    require(!weights || weights->shape(0) == n_docs, "weights must be (n_docs,)");
    if (rows) check_range(rows->data(), rows->shape(0), int64_t(phi.shape(0)), "a row is out of range");
    auto losses = new_array<double>({n_docs});
    auto grad_theta = new_array<T>({n_docs, n_topics});
    const Batch<T> batch{indptr.data(), indices.data(), counts.data(), documents.data(), int64_t(n_docs), int64_t(phi.shape(0))};
    {
      nb::gil_scoped_release release;
      const T* const scale = frame ? frame->data() : nullptr;
      engine.decode(batch, phi.data(), scale, scale ? scale + n_topics : nullptr, int(n_topics), theta.data(), n_threads, losses.data(),
                    grad_theta.data());
      if (rows)
        engine.reverse(nullptr, weights->data(), nullptr, rows->data(), int64_t(rows->shape(0)), blocks_of(per_block, engine.n_docs()),
                       n_threads);
    }
    if (!rows) return nb::make_tuple(losses, grad_theta, nb::none());
    const size_t shape[2] = {rows->shape(0), n_topics};
    const int64_t strides[2] = {engine.gradient_stride(), 1};
    return nb::make_tuple(losses, grad_theta, Numpy<T>(const_cast<T*>(engine.gradient()), 2, shape, self, strides));
  }

  nb::tuple trace() const {
    require(has_objective, "forward(keep=True, objective=True) comes first");
    const size_t D = engine.n_docs(), L = engine.n_layers(), K = engine.n_topics();
    auto thetas = new_array<T>({D, L + 1, K});
    auto steps = new_array<double>({D, L});
    auto objective = new_array<double>({D, L + 1});
    auto n_trials = new_array<int32_t>({D, L});
    engine.copy_trace(thetas.data(), steps.data(), objective.data(), n_trials.data());
    return nb::make_tuple(thetas, steps, objective, n_trials);
  }

  // f(theta_L) of every document.
  Numpy<double> objective() const {
    require(has_objective, "forward(keep=True, objective=True) comes first");
    auto objective = new_array<double>({size_t(engine.n_docs())});
    engine.copy_objective(objective.data());
    return objective;
  }

  // The gradient is a view of this engine's memory, valid until its next call.
  static nb::tuple reverse(nb::object self, std::optional<Array<const T, 2>> grad_theta, std::optional<Array<const T, 1>> word_weights,
                           Array<const int32_t, 1> rows, bool want_counts, int n_threads, int64_t per_block) {
    BoundEngine& bound = nb::cast<BoundEngine&>(self);
    Engine<T>& engine = bound.engine;
    require(bound.has_trace, "forward(keep=True) comes first");
    require(!grad_theta || (int64_t(grad_theta->shape(0)) == engine.n_docs() && int(grad_theta->shape(1)) == engine.n_topics()),
            "grad_theta must be (n_docs, n_topics)");
    require(!word_weights || int64_t(word_weights->shape(0)) == engine.n_docs(), "word_weights must be (n_docs,)");
    check_range(rows.data(), rows.shape(0), engine.n_words(), "a row is out of range");
    std::optional<Numpy<T>> grad_counts;
    if (want_counts) grad_counts = new_array<T>({size_t(engine.n_entries())});
    {
      nb::gil_scoped_release release;
      engine.reverse(grad_theta ? grad_theta->data() : nullptr, word_weights ? word_weights->data() : nullptr,
                     grad_counts ? grad_counts->data() : nullptr, rows.data(), int64_t(rows.shape(0)),
                     blocks_of(per_block, engine.n_docs()), n_threads);
    }
    const size_t shape[2] = {rows.shape(0), size_t(engine.n_topics())};
    const int64_t strides[2] = {engine.gradient_stride(), 1};
    Numpy<T> gradient(const_cast<T*>(engine.gradient()), 2, shape, self, strides);
    return nb::make_tuple(gradient, grad_counts ? nb::cast(*grad_counts) : nb::none());
  }
};

template <class T>
void bind(nb::module_& m, const char* engine_name) {
  using Bound = BoundEngine<T>;
  nb::class_<Bound>(m, engine_name, "Forward and reverse passes over batches; owns their working memory.")
      .def(nb::init<>())
      .def("forward", &Bound::forward, "phi"_a, "indptr"_a, "indices"_a, "counts"_a, "documents"_a, "alpha"_a, "n_layers"_a, "rule"_a,
           "tol"_a, "steps"_a.none(), "frame"_a.none(), "keep"_a, "objective"_a, "n_threads"_a)
      .def("decode", &Bound::decode, "phi"_a, "frame"_a.none(), "indptr"_a, "indices"_a, "counts"_a, "documents"_a, "theta"_a,
           "weights"_a.none(), "rows"_a.none(), "n_threads"_a, "block_docs"_a = 0)
      .def("trace", &Bound::trace)
      .def("objective", &Bound::objective)
      .def("reverse", &Bound::reverse, "grad_theta"_a.none(), "word_weights"_a.none(), "rows"_a, "want_counts"_a, "n_threads"_a,
           "block_docs"_a = 0);

  m.def(
      "thinned",
      [](Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> counts, Array<const int64_t, 1> documents,
         std::optional<Array<const double, 1>> word_weights, double fraction, uint64_t seed, int n_threads, int64_t first) {
        check_documents(indptr, indices, documents);
        require(indices.shape(0) == counts.shape(0) && fraction >= 0 && fraction < 1 && n_threads > 0, "thinned: counts, fraction or n_threads");
        const size_t n_docs = documents.shape(0);
        if (word_weights)
          for (size_t d = 0; d < n_docs; ++d)
            check_range(indices.data() + indptr(documents(d)), indptr(documents(d) + 1) - indptr(documents(d)),
                        int64_t(word_weights->shape(0)), "thinned: a word is out of range");
        const Thinning thinning{seed, fraction, first};
        auto out_indptr = new_array<int64_t>({n_docs + 1});
        {
          nb::gil_scoped_release release;
          thinned_indptr(indptr.data(), documents.data(), int64_t(n_docs), thinning, out_indptr.data(), n_threads);
        }
        const size_t n_entries = size_t(out_indptr.data()[n_docs]);
        auto out_indices = new_array<int32_t>({n_entries});
        auto out_counts = new_array<T>({n_entries});
        {
          nb::gil_scoped_release release;
          thinned_entries<T>(indptr.data(), indices.data(), counts.data(), documents.data(), int64_t(n_docs),
                             word_weights ? word_weights->data() : nullptr, thinning, out_indptr.data(), out_indices.data(),
                             out_counts.data(), n_threads);
        }
        return nb::make_tuple(out_indptr, out_indices, out_counts);
      },
      "indptr"_a, "indices"_a, "counts"_a.noconvert(), "documents"_a, "word_weights"_a.noconvert().none(), "fraction"_a, "seed"_a,
      "n_threads"_a, "first"_a = 0);
}

}  // namespace
}  // namespace mirrorlda

NB_MODULE(_core, m) {
  using namespace mirrorlda;
  m.doc() = "The compiled core of mirrorlda.";
  // What Python's caches hold when the interpreter ends is no leak.
  nb::set_leak_warnings(false);
  m.attr("FLOOR") = kFloor;
  m.def("block_docs", &block_docs, "n_docs"_a);
  m.def("instruction_set", &instruction_set);
  m.def("instruction_sets", &instruction_sets);
  m.def(
      "distinct_words",
      [](Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const int64_t, 1> documents, int64_t n_words,
         int n_threads) {
        check_documents(indptr, indices, documents);
        require(n_words > 0 && n_threads > 0, "distinct_words: n_words and n_threads must be positive");
        std::vector<int32_t> words;
        {
          nb::gil_scoped_release release;
          distinct_words(indptr.data(), indices.data(), documents.data(), int64_t(documents.shape(0)), n_words, n_threads, words);
        }
        auto out = new_array<int32_t>({words.size()});
        std::copy(words.begin(), words.end(), out.data());
        return out;
      },
      "indptr"_a, "indices"_a, "documents"_a, "n_words"_a, "n_threads"_a);
  bind_likelihood(m, "left_to_right", &left_to_right);
  bind_likelihood(m, "chib", &chib);
  bind<float>(m, "Engine32");
  bind<double>(m, "Engine64");
  bind_learning(m);
  bind_shards(m);
  bind_text(m);
}
