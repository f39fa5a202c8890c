// The core as Python sees it: arrays in, arrays out. Input was checked where it entered the package; here only what memory safety needs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include <nanobind/stl/optional.h>

#include "engine.hpp"
#include "learn.hpp"
#include "thin.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mirrorlda {
namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Strided = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T>;

template <class T>
Numpy<T> new_array(std::initializer_list<size_t> shape) {
  size_t n = 1;
  for (size_t extent : shape) n *= extent;
  T* data = new T[n];
  return Numpy<T>(data, shape, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// NumPy gives an array without elements any strides.
template <class T>
bool has_contiguous_rows(const Strided<const T, 2>& array) {
  return array.size() == 0 || array.shape(1) == 1 || array.stride(1) == 1;
}

// All of `values` in [0, limit).
template <class I>
void check_range(const I* values, size_t n, int64_t limit, const char* what) {
  bool holds = true;
  for (size_t i = 0; i < n; ++i) holds &= values[i] >= 0 && values[i] < limit;
  require(holds, what);
}

void check_documents(const Array<const int64_t, 1>& indptr, const Array<const int32_t, 1>& indices,
                     const Array<const int64_t, 1>& documents) {
  check_range(documents.data(), documents.shape(0), int64_t(indptr.shape(0)) - 1, "a document number is out of range");
  bool ascending = true;
  for (size_t d = 0; d < documents.shape(0); ++d) {
    const int64_t begin = indptr(documents(d)), end = indptr(documents(d) + 1);
    ascending &= begin >= 0 && begin <= end && size_t(end) <= indices.shape(0);
  }
  require(ascending, "indptr is not ascending");
}

template <class T>
struct BoundEngine {
  Engine<T> engine;
  // Kept alive from forward to reverse, which reads them again.
  std::vector<nb::object> inputs;
  bool has_trace = false, has_objective = false;

  Numpy<T> forward(Array<const T, 2> phi, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> counts,
                   Array<const int64_t, 1> documents, Array<const T, 1> alpha, int n_layers, int rule,
                   std::optional<Array<const double, 2>> steps, bool keep, bool objective, int n_threads) {
    check_documents(indptr, indices, documents);
    for (size_t d = 0; d < documents.shape(0); ++d)
      check_range(indices.data() + indptr(documents(d)), indptr(documents(d) + 1) - indptr(documents(d)), int64_t(phi.shape(0)),
                  "a word is out of range");
    require(indices.shape(0) == counts.shape(0), "indices and counts differ in length");
    const size_t n_docs = documents.shape(0), n_topics = phi.shape(1);
    require(alpha.shape(0) == n_topics && n_topics > 0 && n_layers >= 1 && n_threads > 0, "alpha, n_topics, n_layers or n_threads");
    require(rule >= int(StepRule::l1) && rule <= int(StepRule::given), "rule is unknown");
    require((rule == int(StepRule::given)) == steps.has_value(), "steps are for the given rule only");
    require(!steps || (steps->shape(0) == n_docs && steps->shape(1) == size_t(n_layers)), "steps must be (n_docs, n_layers)");
    Numpy<T> theta = new_array<T>({n_docs, n_topics});
    has_trace = has_objective = false;
    inputs.clear();
    if (keep)
      for (nb::object o : {nb::cast(phi), nb::cast(indptr), nb::cast(indices), nb::cast(counts), nb::cast(documents)}) inputs.push_back(o);
    if (keep && steps) inputs.push_back(nb::cast(*steps));
    const Batch<T> batch{indptr.data(), indices.data(), counts.data(), documents.data(), int64_t(n_docs), int64_t(phi.shape(0))};
    const Topics<T> topics{phi.data(), int(n_topics), alpha.data(), n_layers, StepRule(rule), objective, steps ? steps->data() : nullptr};
    {
      nb::gil_scoped_release release;
      engine.forward(batch, topics, keep, n_threads, theta.data());
    }
    has_trace = keep;
    has_objective = keep && objective;
    return theta;
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
                           Array<const int32_t, 1> rows, bool want_counts, int n_threads) {
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
                     grad_counts ? grad_counts->data() : nullptr, rows.data(), int64_t(rows.shape(0)), n_threads);
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
           "steps"_a.none(), "keep"_a, "objective"_a, "n_threads"_a)
      .def("trace", &Bound::trace)
      .def("objective", &Bound::objective)
      .def("reverse", &Bound::reverse, "grad_theta"_a.none(), "word_weights"_a.none(), "rows"_a, "want_counts"_a, "n_threads"_a);

  m.def(
      "thinned",
      [](Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> counts, Array<const int64_t, 1> documents,
         std::optional<Array<const T, 1>> word_weights, double fraction, uint64_t seed, int n_threads) {
        check_documents(indptr, indices, documents);
        require(indices.shape(0) == counts.shape(0) && fraction >= 0 && fraction < 1 && n_threads > 0, "thinned: counts, fraction or n_threads");
        const size_t n_docs = documents.shape(0);
        if (word_weights)
          for (size_t d = 0; d < n_docs; ++d)
            check_range(indices.data() + indptr(documents(d)), indptr(documents(d) + 1) - indptr(documents(d)),
                        int64_t(word_weights->shape(0)), "thinned: a word is out of range");
        const Thinning thinning{seed, fraction};
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
      "n_threads"_a);
  m.def(
      "catch_up",
      [](Array<T, 2> phi, std::optional<Array<T, 2>> average, Array<int32_t, 1> last, Array<const double, 3> history, int64_t step,
         Array<const int32_t, 1> rows, int n_threads) {
        require(last.shape(0) == phi.shape(0) && history.shape(1) == 4 && history.shape(2) == phi.shape(1) && step >= 0 &&
                    size_t(step) < history.shape(0) && (!average || average->size() == phi.size()),
                "catch_up: shapes do not agree");
        check_range(rows.data(), rows.shape(0), int64_t(phi.shape(0)), "catch_up: a row is out of range");
        for (size_t i = 0; i < rows.shape(0); ++i) require(last(rows(i)) >= 0 && last(rows(i)) <= step, "catch_up: a step is out of range");
        nb::gil_scoped_release release;
        catch_up<T>(phi.data(), average ? average->data() : nullptr, last.data(), int(phi.shape(1)), History{history.data(), step},
                    rows.data(), int64_t(rows.shape(0)), n_threads);
      },
      "phi"_a.noconvert(), "average"_a.noconvert().none(), "last"_a.noconvert(), "history"_a.noconvert(), "step"_a, "rows"_a, "n_threads"_a);
  m.def(
      "mirror_rows",
      [](Array<T, 2> phi, Array<const int32_t, 1> rows, Strided<const T, 2> gradient, Array<const T, 1> rate, int n_threads) {
        require(gradient.shape(0) == rows.shape(0) && gradient.shape(1) == phi.shape(1) && rate.shape(0) == phi.shape(1) &&
                    has_contiguous_rows(gradient),
                "mirror_rows: shapes do not agree");
        check_range(rows.data(), rows.shape(0), int64_t(phi.shape(0)), "mirror_rows: a row is out of range");
        auto before = new_array<double>({phi.shape(1)}), after = new_array<double>({phi.shape(1)});
        {
          nb::gil_scoped_release release;
          mirror_rows<T>(phi.data(), int(phi.shape(1)), rows.data(), int64_t(rows.shape(0)), gradient.data(), gradient.stride(0),
                         rate.data(), before.data(), after.data(), n_threads);
        }
        return nb::make_tuple(before, after);
      },
      "phi"_a.noconvert(), "rows"_a, "gradient"_a.noconvert(), "rate"_a.noconvert(), "n_threads"_a);
  m.def(
      "column_squares",
      [](Strided<const T, 2> gradient, int n_threads) {
        require(has_contiguous_rows(gradient), "column_squares: rows must be contiguous");
        auto squares = new_array<double>({gradient.shape(1)});
        {
          nb::gil_scoped_release release;
          column_squares<T>(gradient.data(), int64_t(gradient.shape(0)), gradient.stride(0), int(gradient.shape(1)), squares.data(), n_threads);
        }
        return squares;
      },
      "gradient"_a.noconvert(), "n_threads"_a);
  m.def(
      "scores",
      [](Array<const T, 2> theta, Array<const T, 2> U, int n_threads) {
        require(theta.shape(1) == U.shape(1), "scores: theta and U differ in their topics");
        auto out = new_array<T>({theta.shape(0), U.shape(0)});
        {
          nb::gil_scoped_release release;
          scores<T>(theta.data(), U.data(), int64_t(theta.shape(0)), int(U.shape(1)), int(U.shape(0)), out.data(), n_threads);
        }
        return out;
      },
      "theta"_a.noconvert(), "U"_a.noconvert(), "n_threads"_a);
  m.def(
      "back_scores",
      [](Array<const T, 2> grad_scores, Array<const T, 2> U, int n_threads) {
        require(grad_scores.shape(1) == U.shape(0), "back_scores: grad_scores and U differ in their outputs");
        auto out = new_array<T>({grad_scores.shape(0), U.shape(1)});
        {
          nb::gil_scoped_release release;
          back_scores<T>(grad_scores.data(), U.data(), int64_t(grad_scores.shape(0)), int(U.shape(1)), int(U.shape(0)), out.data(), n_threads);
        }
        return out;
      },
      "grad_scores"_a.noconvert(), "U"_a.noconvert(), "n_threads"_a);
  m.def(
      "outer",
      [](Array<const T, 2> grad_scores, Array<const T, 2> theta, int n_threads) {
        require(grad_scores.shape(0) == theta.shape(0), "outer: grad_scores and theta differ in their documents");
        auto out = new_array<T>({grad_scores.shape(1), theta.shape(1)});
        {
          nb::gil_scoped_release release;
          outer<T>(grad_scores.data(), theta.data(), int64_t(theta.shape(0)), int(theta.shape(1)), int(grad_scores.shape(1)), out.data(),
                 n_threads);
        }
        return out;
      },
      "grad_scores"_a.noconvert(), "theta"_a.noconvert(), "n_threads"_a);
}

}  // namespace
}  // namespace mirrorlda

NB_MODULE(_core, m) {
  using namespace mirrorlda;
  m.doc() = "The compiled core of mirrorlda.";
  m.attr("FLOOR") = kFloor;
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
  bind<float>(m, "Engine32");
  bind<double>(m, "Engine64");
}
