#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "method/learning_step.hpp"
#include "method/phi_changes.hpp"

using namespace nanobind::literals;

namespace mirrorlda {
namespace {

template <class T>
void bind_steps(nb::module_& m) {
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
      "count_rows",
      [](Array<T, 2> counts, Array<const int32_t, 1> rows, Strided<const T, 2> gradient, Array<const T, 2> frame, T factor, int n_threads) {
        const size_t n_topics = counts.shape(1);
        require(gradient.shape(0) == rows.shape(0) && gradient.shape(1) == n_topics && has_contiguous_rows(gradient) &&
                    frame.shape(0) == 2 && frame.shape(1) == n_topics,
                "count_rows: shapes do not agree");
        check_range(rows.data(), rows.shape(0), int64_t(counts.shape(0)), "count_rows: a row is out of range");
        auto totals = new_array<double>({n_topics});
        {
          nb::gil_scoped_release release;
          count_rows<T>(counts.data(), rows.data(), int64_t(rows.shape(0)), gradient.data(), gradient.stride(0), int(n_topics),
                        frame.data(), frame.data() + n_topics, factor, totals.data(), n_threads);
        }
        return totals;
      },
      "counts"_a.noconvert(), "rows"_a, "gradient"_a.noconvert(), "frame"_a.noconvert(), "factor"_a, "n_threads"_a);
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

void bind_learning(nb::module_& m) {
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
      "solve_rows",
      [](Array<const double, 2> matrix, Array<const double, 2> rows, int n_threads) {
        const size_t size = matrix.shape(0);
        require(matrix.shape(1) == size && rows.shape(1) == size && n_threads > 0, "solve_rows: shapes do not agree");
        auto solved = new_array<double>({rows.shape(0), size});
        std::copy_n(rows.data(), rows.shape(0) * size, solved.data());
        bool is_definite;
        {
          nb::gil_scoped_release release;
          std::vector<double> factor(matrix.data(), matrix.data() + size * size);
          is_definite = solve_rows(factor.data(), int64_t(size), solved.data(), int64_t(rows.shape(0)), n_threads);
        }
        require(is_definite, "solve_rows: the matrix is not positive definite");
        return solved;
      },
      "matrix"_a.noconvert(), "rows"_a.noconvert(), "n_threads"_a);
  bind_steps<float>(m);
  bind_steps<double>(m);
  bind_rows<float>(m);
  bind_rows<uint16_t>(m);
}

}  // namespace mirrorlda
