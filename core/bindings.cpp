// The core as Python sees it: arrays in, arrays out. Input was checked where it entered the package; here only what memory safety needs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>

#include <nanobind/stl/optional.h>

#include "changes.hpp"
#include "engine.hpp"
#include "learn.hpp"
#include "likelihood.hpp"
#include "shard.hpp"
#include "text_bindings.hpp"
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

template <class T>
bool has_shape_of(const std::optional<Array<T, 2>>& array, const Array<T, 2>& like) {
  return !array || (array->shape(0) == like.shape(0) && array->shape(1) == like.shape(1));
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

void check_indptr(const Array<const int64_t, 1>& indptr, const Array<const int32_t, 1>& indices) {
  bool ascending = indptr.shape(0) > 0 && indptr(0) == 0 && size_t(indptr(indptr.shape(0) - 1)) == indices.shape(0);
  for (size_t d = 0; d + 1 < indptr.shape(0); ++d) ascending &= indptr(d) <= indptr(d + 1);
  require(ascending, "indptr is not ascending");
}

// Documents of a block: as many as asked for, or with 0 as many as a batch of n_docs has.
int64_t blocks_of(int64_t wanted, int64_t n_docs) {
  require(wanted >= 0, "block_docs is negative");
  return wanted ? wanted : block_docs(n_docs);
}

// A shard's table of blocks, all of which lie within the shard.
const Block* checked_blocks(const Array<const uint8_t, 1>& shard, const Array<const uint8_t, 1>& table, const BlockFormat& format) {
  require(format.word_bytes >= 2 && format.word_bytes <= 4, "a word has 2, 3 or 4 bytes");
  require(table.shape(0) % sizeof(Block) == 0 && reinterpret_cast<uintptr_t>(table.data()) % alignof(Block) == 0, "the table of blocks");
  const Block* blocks = reinterpret_cast<const Block*>(table.data());
  for (size_t i = 0; i < table.shape(0) / sizeof(Block); ++i) {
    const uint32_t bytes = blocks[i].count_bytes;
    require(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8, "a count has 1, 2, 4 or 8 bytes");
    const uint64_t size = block_size(blocks[i], format);
    require(size <= shard.shape(0) && blocks[i].offset <= shard.shape(0) - size, "a block ends beyond its shard");
  }
  return blocks;
}

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
  // Kept alive from forward to reverse, which reads them again.
  std::vector<nb::object> inputs;
  bool has_trace = false, has_objective = false;

  Numpy<T> forward(Array<const T, 2> phi, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> counts,
                   Array<const int64_t, 1> documents, Array<const T, 1> alpha, int n_layers, int rule,
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
    const Topics<T> topics{phi.data(),     scale,     scale ? scale + n_topics : nullptr,  int(n_topics), alpha.data(), n_layers,
                           StepRule(rule), objective, steps ? steps->data() : nullptr};
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
           "steps"_a.none(), "frame"_a.none(), "keep"_a, "objective"_a, "n_threads"_a)
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
  m.def(
      "row_sums",
      [](Array<const int32_t, 1> rows, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const T, 1> a,
         Array<const T, 1> b, int64_t n_words, int64_t per_block) {
        require(indices.shape(0) == a.shape(0) && a.shape(0) == b.shape(0), "row_sums: lengths differ");
        check_indptr(indptr, indices);
        check_range(rows.data(), rows.shape(0), n_words, "row_sums: a row is out of range");
        check_range(indices.data(), indices.shape(0), n_words, "row_sums: a word is out of range");
        auto sums = new_array<double>({rows.shape(0)});
        bool found;
        {
          nb::gil_scoped_release release;
          found = row_sums<T>(rows.data(), int64_t(rows.shape(0)), indptr.data(), indices.data(), a.data(), b.data(),
                              int64_t(indptr.shape(0)) - 1, n_words, blocks_of(per_block, int64_t(indptr.shape(0)) - 1), sums.data());
        }
        require(found, "row_sums: a word is not among the rows");
        return sums;
      },
      "rows"_a, "indptr"_a, "indices"_a, "a"_a.noconvert(), "b"_a.noconvert(), "n_words"_a, "block_docs"_a = 0);
  m.def(
      "logarithmic",
      [](Array<const T, 1> counts) {
        auto out = new_array<T>({counts.shape(0)});
        {
          nb::gil_scoped_release release;
          logarithmic<T>(CountTable<T>(true), counts.data(), int64_t(counts.shape(0)), out.data());
        }
        return out;
      },
      "counts"_a.noconvert());
  m.def(
      "read_documents",
      [](Array<const uint8_t, 1> shard, Array<const uint8_t, 1> table, Array<const uint32_t, 1> sizes, int block_docs, int word_bytes,
         Array<const int64_t, 1> documents, Array<const int64_t, 1> to, bool logarithmic, Array<int32_t, 1> indices,
         Array<T, 1> counts) {
        const BlockFormat format{word_bytes, 0, 0};
        const CountTable<T> counts_of(logarithmic);
        const Block* blocks = checked_blocks(shard, table, format);
        const int64_t n_blocks = int64_t(table.shape(0) / sizeof(Block)), n_docs = int64_t(sizes.shape(0));
        require(block_docs > 0 && n_docs <= n_blocks * block_docs, "read_documents: there are more documents than blocks hold");
        require(documents.shape(0) == to.shape(0) && indices.shape(0) == counts.shape(0), "read_documents: lengths differ");
        check_range(documents.data(), documents.shape(0), n_docs, "read_documents: a document is out of range");
        bool holds = true;
        {
          nb::gil_scoped_release release;
          int64_t at = 0;  // the document at whose first entry, of its block, `first` stands
          uint64_t first = 0;
          for (size_t i = 0; i < documents.shape(0) && holds; ++i) {
            const int64_t d = documents(i), begin = d / block_docs * block_docs;
            if (at < begin || at > d) at = begin, first = 0;
            for (; at < d; ++at) first += sizes(at);
            const Block& block = blocks[d / block_docs];
            holds = to(i) >= 0 && uint64_t(to(i)) + sizes(d) <= indices.shape(0) && first + sizes(d) <= block.n_entries;
            if (holds) read_document<T>(shard.data(), block, format, first, sizes(d), counts_of, indices.data() + to(i), counts.data() + to(i));
          }
        }
        require(holds, "read_documents: a document ends beyond its block, or beyond the room for it");
      },
      "shard"_a, "table"_a, "sizes"_a, "block_docs"_a, "word_bytes"_a, "documents"_a, "to"_a, "logarithmic"_a, "indices"_a.noconvert(),
      "counts"_a.noconvert());
  m.def(
      "mirror_rows",
      [](Array<T, 2> z, std::optional<Array<T, 2>> average, Array<const double, 2> frame, Array<const int32_t, 1> rows,
         Strided<const T, 2> gradient, Array<const T, 1> rate, int n_threads) {
        const size_t n_topics = z.shape(1);
        require(gradient.shape(0) == rows.shape(0) && gradient.shape(1) == n_topics && rate.shape(0) == n_topics &&
                    has_contiguous_rows(gradient) && frame.shape(0) == 4 && frame.shape(1) == n_topics && has_shape_of(average, z),
                "mirror_rows: shapes do not agree");
        check_range(rows.data(), rows.shape(0), int64_t(z.shape(0)), "mirror_rows: a row is out of range");
        auto change = new_array<double>({n_topics});
        {
          nb::gil_scoped_release release;
          mirror_rows<T>({z.data(), average ? average->data() : nullptr, int(n_topics), frame.data()}, rows.data(), int64_t(rows.shape(0)),
                         gradient.data(), gradient.stride(0), rate.data(), change.data(), n_threads);
        }
        return change;
      },
      "z"_a.noconvert(), "average"_a.noconvert().none(), "frame"_a.noconvert(), "rows"_a, "gradient"_a.noconvert(), "rate"_a.noconvert(),
      "n_threads"_a);
  m.def(
      "settle",
      [](Array<T, 2> z, std::optional<Array<T, 2>> average, Array<const double, 2> frame, int n_threads) {
        const size_t n_topics = z.shape(1);
        require(frame.shape(0) == 4 && frame.shape(1) == n_topics && has_shape_of(average, z), "settle: shapes do not agree");
        auto sums = new_array<double>({2, n_topics});
        {
          nb::gil_scoped_release release;
          settle<T>({z.data(), average ? average->data() : nullptr, int(n_topics), frame.data()}, int64_t(z.shape(0)), sums.data(), n_threads);
        }
        return sums;
      },
      "z"_a.noconvert(), "average"_a.noconvert().none(), "frame"_a.noconvert(), "n_threads"_a);
  m.def(
      "log_changes",
      [](Array<const T, 2> z, Array<const int32_t, 1> rows, Array<const T, 2> before, Array<const T, 1> shift, Array<const T, 1> floor,
         T weight) {
        const size_t n_rows = rows.shape(0), n_topics = z.shape(1);
        require(before.shape(0) == n_rows && before.shape(1) == n_topics && shift.shape(0) == n_topics && floor.shape(0) == n_topics,
                "log_changes: shapes do not agree");
        check_range(rows.data(), n_rows, int64_t(z.shape(0)), "log_changes: a row is out of range");
        auto halves = new_array<uint16_t>({n_rows, n_topics});
        {
          nb::gil_scoped_release release;
          log_changes<T>(z.data(), rows.data(), int64_t(n_rows), int(n_topics), before.data(), shift.data(), floor.data(), weight, halves.data());
        }
        return halves;
      },
      "z"_a.noconvert(), "rows"_a, "before"_a.noconvert(), "shift"_a.noconvert(), "floor"_a.noconvert(), "weight"_a);
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
      [](Array<const T, 2> grad_scores, Array<const T, 2> theta, int n_threads, int64_t per_block) {
        require(grad_scores.shape(0) == theta.shape(0), "outer: grad_scores and theta differ in their documents");
        auto out = new_array<double>({grad_scores.shape(1), theta.shape(1)});
        {
          nb::gil_scoped_release release;
          outer<T>(grad_scores.data(), theta.data(), int64_t(theta.shape(0)), int(theta.shape(1)), int(grad_scores.shape(1)),
                   blocks_of(per_block, int64_t(theta.shape(0))), out.data(), n_threads);
        }
        return out;
      },
      "grad_scores"_a.noconvert(), "theta"_a.noconvert(), "n_threads"_a, "block_docs"_a = 0);
}

template <class V>
void bind_rows(nb::module_& m) {
  m.def(
      "add_rows",
      [](Array<const int32_t, 1> left_rows, Array<const V, 2> left, Array<const int32_t, 1> right_rows, Array<const V, 2> right) {
        const size_t width = left.shape(1);
        require(left.shape(0) == left_rows.shape(0) && right.shape(0) == right_rows.shape(0) && right.shape(1) == width,
                "add_rows: shapes do not agree");
        const int32_t *const from = left_rows.data(), *const to = from + left_rows.shape(0);
        const int32_t *const right_from = right_rows.data(), *const right_to = right_from + right_rows.shape(0);
        require(std::is_sorted(from, to) && std::is_sorted(right_from, right_to), "add_rows: rows are not in ascending order");
        std::vector<int32_t> rows;
        std::set_union(from, to, right_from, right_to, std::back_inserter(rows));
        auto sums = new_array<V>({rows.size(), width});
        auto numbers = new_array<int32_t>({rows.size()});
        std::copy(rows.begin(), rows.end(), numbers.data());
        {
          nb::gil_scoped_release release;
          add_rows<V>({from, int64_t(left_rows.shape(0)), left.data()}, {right_from, int64_t(right_rows.shape(0)), right.data()}, int64_t(width),
                      rows, sums.data());
        }
        return nb::make_tuple(numbers, sums);
      },
      "left_rows"_a, "left"_a.noconvert(), "right_rows"_a, "right"_a.noconvert());
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
  m.def(
      "weigh_rows",
      [](Array<double, 1> weights, Array<double, 1> lag, Array<const int32_t, 1> rows, Array<const double, 1> gradient, double rate,
         double clip, double lowest, double highest, double average_weight, int n_threads) {
        require(lag.shape(0) == weights.shape(0) && gradient.shape(0) == rows.shape(0) && n_threads > 0, "weigh_rows: lengths differ");
        check_range(rows.data(), rows.shape(0), int64_t(weights.shape(0)), "weigh_rows: a row is out of range");
        nb::gil_scoped_release release;
        weigh_rows(weights.data(), lag.data(), rows.data(), int64_t(rows.shape(0)), gradient.data(),
                   WeightStep{rate, clip, lowest, highest, average_weight}, n_threads);
      },
      "weights"_a.noconvert(), "lag"_a.noconvert(), "rows"_a, "gradient"_a, "rate"_a, "clip"_a, "lowest"_a, "highest"_a,
      "average_weight"_a, "n_threads"_a);
  m.def(
      "is_sound",
      [](Array<const uint8_t, 1> shard, Array<const uint8_t, 1> table, Array<const uint32_t, 1> sizes, int block, int word_bytes,
         int64_t n_words, double largest_count) {
        const BlockFormat format{word_bytes, n_words, largest_count};
        const Block* blocks = checked_blocks(shard, table, format);
        require(block >= 0 && size_t(block) < table.shape(0) / sizeof(Block), "is_sound: a block is out of range");
        nb::gil_scoped_release release;
        return is_sound(shard.data(), blocks[block], format, sizes.data(), int64_t(sizes.shape(0)));
      },
      "shard"_a, "table"_a, "sizes"_a, "block"_a, "word_bytes"_a, "n_words"_a, "largest_count"_a);
  bind_likelihood(m, "left_to_right", &left_to_right);
  bind_likelihood(m, "chib", &chib);
  bind<float>(m, "Engine32");
  bind<double>(m, "Engine64");
  bind_rows<float>(m);
  bind_rows<uint16_t>(m);
  bind_text(m);
}
