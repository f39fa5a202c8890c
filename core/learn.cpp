#include "learn.hpp"

#include <algorithm>
#include <vector>

#include "dispatch.hpp"
#include "pool.hpp"

namespace mirrorlda {
namespace {

constexpr int64_t kRowsPerTask = 256, kDocumentsPerTask = 256;

template <class Work>
void for_blocks(int64_t n, int64_t per_block, int n_threads, const Work& work) {
  parallel_for((n + per_block - 1) / per_block, n_threads,
               [&](int64_t block, int) { work(block, block * per_block, std::min(n, (block + 1) * per_block)); });
}

// Sums over rows that stay exact enough in float32: a few rows are added up in T, these sums in double.
template <class T>
class LongSum {
 public:
  explicit LongSum(int64_t width) : short_(width), long_(width) {}
  T* next() {
    if (++n_ == kRows) flush();
    return short_.data();
  }
  void add_to(double* total) {
    flush();
    for (size_t i = 0; i < long_.size(); ++i) total[i] += long_[i];
  }

 private:
  static constexpr int kRows = 16;
  void flush() {
    for (size_t i = 0; i < long_.size(); ++i) {
      long_[i] += double(short_[i]);
      short_[i] = T(0);
    }
    n_ = 0;
  }
  int n_ = 0;
  std::vector<T> short_;
  std::vector<double> long_;
};

// Adds up one vector a block, in the order of the blocks.
template <class T>
void add_in_order(const std::vector<T>& parts, int64_t width, double* total) {
  std::fill_n(total, width, 0.0);
  for (size_t i = 0; i < parts.size(); ++i) total[i % width] += double(parts[i]);
}

// The maps of all steps at which some of `rows` were written last.
template <class T>
class RowMaps {
 public:
  RowMaps(const History& history, int n_topics, const int32_t* last, const int32_t* rows, int64_t n_rows)
      : n_topics_(n_topics), position_(history.step + 1, -1) {
    int64_t n_maps = 0;
    for (int64_t i = 0; i < n_rows; ++i)
      if (int64_t& position = position_[last[rows[i]]]; position < 0) position = n_maps++;
    values_.resize(n_maps * 4 * n_topics);
    for (int64_t step = 0; step <= history.step; ++step)
      if (position_[step] >= 0) fill(history, step, values_.data() + position_[step] * 4 * n_topics);
  }

  RowMap<T> at(int32_t step) const {
    const T* v = values_.data() + position_[step] * 4 * n_topics_;
    return {v, v + n_topics_, v + 2 * n_topics_, v + 3 * n_topics_};
  }

 private:
  void fill(const History& history, int64_t step, T* to) const {
    const int64_t K = n_topics_;
    const double *s = history.records + step * 4 * K, *t = history.records + history.step * 4 * K;
    for (int64_t k = 0; k < K; ++k) {
      const double M_s = s[k], B_s = s[K + k], M_t = t[k], B_t = t[K + k];
      const double A = t[2 * K + k] - s[2 * K + k], E = t[3 * K + k] - s[3 * K + k];
      to[k] = T(M_t / M_s);
      to[K + k] = T(M_t * (B_t - B_s));
      to[2 * K + k] = T(A / M_s);
      to[3 * K + k] = T(E - B_s * A);
    }
  }

  int64_t n_topics_;
  std::vector<int64_t> position_;
  std::vector<T> values_;
};

}  // namespace

template <class T>
void catch_up(T* phi, T* average, int32_t* last, int n_topics, const History& history, const int32_t* rows, int64_t n_rows, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const RowMaps<T> maps(history, n_topics, last, rows, n_rows);
  for_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t row = rows[i];
      if (last[row] == history.step) continue;
      k.catch_up(phi + row * n_topics, average ? average + row * n_topics : nullptr, maps.at(last[row]), n_topics);
      last[row] = int32_t(history.step);
    }
  });
}

template <class T>
void mirror_rows(T* phi, int n_topics, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, const T* rate,
                 double* before, double* after, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const int64_t n_blocks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<double> before_parts(n_blocks * n_topics), after_parts(n_blocks * n_topics);
  for_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    LongSum<T> before_sum(n_topics), after_sum(n_topics);
    for (int64_t i = from; i < to; ++i)
      k.mirror_row(phi + int64_t(rows[i]) * n_topics, gradient + i * stride, rate, before_sum.next(), after_sum.next(), n_topics);
    before_sum.add_to(before_parts.data() + block * n_topics);
    after_sum.add_to(after_parts.data() + block * n_topics);
  });
  add_in_order(before_parts, n_topics, before);
  add_in_order(after_parts, n_topics, after);
}

template <class T>
void column_squares(const T* gradient, int64_t n_rows, int64_t stride, int n_topics, double* squares, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  std::vector<double> parts((n_rows + kRowsPerTask - 1) / kRowsPerTask * n_topics);
  for_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) k.add_squares(gradient + i * stride, parts.data() + block * n_topics, n_topics);
  });
  add_in_order(parts, n_topics, squares);
}

template <class T>
void scores(const T* theta, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  for_blocks(n_docs, kDocumentsPerTask, n_threads, [&](int64_t, int64_t from, int64_t to) {
    for (int64_t d = from; d < to; ++d)
      for (int64_t c = 0; c < n_outputs; ++c) out[d * n_outputs + c] = k.dot(theta + d * n_topics, U + c * n_topics, n_topics);
  });
}

template <class T>
void back_scores(const T* grad_scores, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  for_blocks(n_docs, kDocumentsPerTask, n_threads, [&](int64_t, int64_t from, int64_t to) {
    std::fill(out + from * n_topics, out + to * n_topics, T(0));
    for (int64_t d = from; d < to; ++d)
      for (int64_t c = 0; c < n_outputs; ++c) k.add_scaled(out + d * n_topics, grad_scores[d * n_outputs + c], U + c * n_topics, n_topics);
  });
}

template <class T>
void outer(const T* grad_scores, const T* theta, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const int64_t size = int64_t(n_outputs) * n_topics;
  std::vector<T> parts((n_docs + kDocumentsPerTask - 1) / kDocumentsPerTask * size);
  for_blocks(n_docs, kDocumentsPerTask, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    for (int64_t d = from; d < to; ++d)
      for (int64_t c = 0; c < n_outputs; ++c)
        k.add_scaled(parts.data() + block * size + c * n_topics, grad_scores[d * n_outputs + c], theta + d * n_topics, n_topics);
  });
  std::vector<double> total(size);
  add_in_order(parts, size, total.data());
  std::copy(total.begin(), total.end(), out);
}

#define MIRRORLDA_INSTANTIATE(T)                                                                                                  \
  template void catch_up<T>(T*, T*, int32_t*, int, const History&, const int32_t*, int64_t, int);                                 \
  template void mirror_rows<T>(T*, int, const int32_t*, int64_t, const T*, int64_t, const T*, double*, double*, int);             \
  template void column_squares<T>(const T*, int64_t, int64_t, int, double*, int);                                                 \
  template void scores<T>(const T*, const T*, int64_t, int, int, T*, int);                                                        \
  template void back_scores<T>(const T*, const T*, int64_t, int, int, T*, int);                                                   \
  template void outer<T>(const T*, const T*, int64_t, int, int, T*, int);

MIRRORLDA_INSTANTIATE(float)
MIRRORLDA_INSTANTIATE(double)

}  // namespace mirrorlda
