#include "method/learning_step.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "method/dispatch.hpp"
#include "parallel/thread_pool.hpp"

namespace mirrorlda {
namespace {

constexpr int64_t kRowsPerTask = 256, kRowsPerSettling = 4096, kDocumentsPerTask = 256, kRowsSolvedPerTask = 4;

// Rows are far apart where the vocabulary is large: each is a miss if it is not asked for some rows early.
constexpr int64_t kRowsAhead = 6;

template <class T>
inline void prefetch_row(const T* row, int64_t n) {
#if defined(__GNUC__)
  const char* const begin = reinterpret_cast<const char*>(row);
  for (int64_t byte = 0; byte < n * int64_t(sizeof(T)); byte += 64) __builtin_prefetch(begin + byte, 1);
#else
  (void)row, (void)n;
#endif
}

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

// Adds up one vector a block, in the first of them, along the engine's tree over block numbers.
void add_along_tree(std::vector<double>& parts, int64_t width) {
  const int64_t n_blocks = width ? int64_t(parts.size()) / width : 0;
  for (int64_t step = 1; step < n_blocks; step *= 2)
    for (int64_t block = 0; block + step < n_blocks; block += 2 * step)
      for (int64_t i = 0; i < width; ++i) parts[block * width + i] += parts[(block + step) * width + i];
}

// The frame in the rows' own precision.
template <class T>
class Frame {
 public:
  explicit Frame(const Rows<T>& phi) : n_topics_(phi.n_topics), values_(6 * n_topics_) {
    const int64_t K = n_topics_;
    for (int64_t k = 0; k < K; ++k) {
      const double M = phi.frame[k], B = phi.frame[K + k];
      const double values[] = {M, M * B, 1 / M, B, phi.frame[2 * K + k], phi.frame[3 * K + k]};
      for (int64_t i = 0; i < 6; ++i) values_[i * K + k] = T(values[i]);
    }
  }
  FrameVectors<T> vectors() const {
    const T* v = values_.data();
    return {v, v + n_topics_, v + 2 * n_topics_, v + 3 * n_topics_, v + 4 * n_topics_, v + 5 * n_topics_};
  }

 private:
  int64_t n_topics_;
  std::vector<T> values_;
};

}  // namespace

template <class T>
void mirror_rows(const Rows<T>& phi, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, const T* rate, double* change,
                 int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const Frame<T> frame(phi);
  const int64_t n_topics = phi.n_topics, n_blocks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<double> parts(n_blocks * n_topics);
  for_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    LongSum<T> sum(n_topics);
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = rows[i] * n_topics, ahead = rows[std::min(i + kRowsAhead, n_rows - 1)] * n_topics;
      prefetch_row(phi.z + ahead, n_topics);
      if (phi.average) prefetch_row(phi.average + ahead, n_topics);
      k.mirror_row(phi.z + at, phi.average ? phi.average + at : nullptr, frame.vectors(), gradient + i * stride, rate, sum.next(),
                   int(n_topics));
    }
    sum.add_to(parts.data() + block * n_topics);
  });
  add_in_order(parts, n_topics, change);
}

template <class T>
void settle(const Rows<T>& phi, int64_t n_words, double* sums, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const Frame<T> frame(phi);
  const int64_t n_topics = phi.n_topics, n_blocks = (n_words + kRowsPerSettling - 1) / kRowsPerSettling;
  std::vector<double> parts(n_blocks * 2 * n_topics);
  for_blocks(n_words, kRowsPerSettling, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    LongSum<T> sum(n_topics), average_sum(n_topics);
    for (int64_t row = from; row < to; ++row) {
      T *const z = phi.z + row * n_topics, *const average = phi.average ? phi.average + row * n_topics : nullptr;
      k.settle_row(z, average, frame.vectors(), int(n_topics));
      k.add_scaled(sum.next(), T(1), z, n_topics);
      if (average) k.add_scaled(average_sum.next(), T(1), average, n_topics);
    }
    sum.add_to(parts.data() + block * 2 * n_topics);
    average_sum.add_to(parts.data() + (block * 2 + 1) * n_topics);
  });
  add_in_order(parts, 2 * n_topics, sums);
}

template <class T>
void count_rows(T* counts, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, int n_topics, const T* scale,
                const T* shift, T factor, double* totals, int n_threads) {
  std::vector<double> parts((n_rows + kRowsPerTask - 1) / kRowsPerTask * n_topics);
  for_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    double* const sums = parts.data() + block * n_topics;
    for (int64_t i = from; i < to; ++i) {
      T* const row = counts + int64_t(rows[i]) * n_topics;
      const T* const g = gradient + i * stride;
      for (int k = 0; k < n_topics; ++k) {
        const T added = -factor * g[k] * (scale[k] * row[k] + shift[k]);
        row[k] += added;
        sums[k] += added;
      }
    }
  });
  add_in_order(parts, n_topics, totals);
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
bool row_sums(const int32_t* rows, int64_t n_rows, const int64_t* indptr, const int32_t* indices, const T* a, const T* b, int64_t n_docs,
              int64_t n_words, int64_t per_block, double* sums) {
  // Places of words that are not among the rows are left over from other batches: a look at the row tells.
  thread_local std::vector<int32_t> places;
  if (int64_t(places.size()) < n_words) places.resize(n_words);
  int32_t* const place = places.data();
  for (int64_t i = 0; i < n_rows; ++i) place[rows[i]] = int32_t(i);
  std::vector<double> parts(std::max<int64_t>(1, (n_docs + per_block - 1) / per_block) * n_rows);
  bool found = true;
  for (int64_t first = 0; first < n_docs; first += per_block) {
    double* const part = parts.data() + first / per_block * n_rows;
    for (int64_t e = indptr[first]; e < indptr[std::min(n_docs, first + per_block)]; ++e) {
      const int32_t i = place[indices[e]];
      const bool known = i < n_rows && rows[i] == indices[e];
      found &= known;
      if (known) part[i] += double(T(a[e] * b[e]));
    }
  }
  add_along_tree(parts, n_rows);
  std::copy_n(parts.data(), n_rows, sums);
  return found;
}

void weigh_rows(double* weights, double* lag, const int32_t* rows, int64_t n_rows, const double* gradient, const WeightStep& step,
                int n_threads) {
  for_blocks(n_rows, 4 * kRowsPerTask, n_threads, [&](int64_t, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      double& weight = weights[rows[i]];
      const double exponent = std::clamp(-step.rate * gradient[i], -step.clip, step.clip);
      const double next = std::clamp(weight * std::exp(exponent), step.lowest, step.highest);
      lag[rows[i]] += step.average_weight * (next - weight);
      weight = next;
    }
  });
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
void outer(const T* grad_scores, const T* theta, int64_t n_docs, int n_topics, int n_outputs, int64_t per_block, double* out, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const int64_t size = int64_t(n_outputs) * n_topics;
  std::vector<T> parts(std::max<int64_t>(1, (n_docs + per_block - 1) / per_block) * size);
  for_blocks(n_docs, per_block, n_threads, [&](int64_t block, int64_t from, int64_t to) {
    for (int64_t d = from; d < to; ++d)
      for (int64_t c = 0; c < n_outputs; ++c)
        k.add_scaled(parts.data() + block * size + c * n_topics, grad_scores[d * n_outputs + c], theta + d * n_topics, n_topics);
  });
  std::vector<double> sums(parts.begin(), parts.end());
  add_along_tree(sums, size);
  std::copy_n(sums.data(), size, out);
}

bool solve_rows(double* matrix, int64_t size, double* rows, int64_t n_rows, int n_threads) {
  const Kernels<double>& k = kernels<double>();
  // Row i of the factor L, from those above it: all sums are products of parts of rows.
  for (int64_t i = 0; i < size; ++i) {
    double* const row = matrix + i * size;
    for (int64_t j = 0; j < i; ++j) row[j] = (row[j] - k.dot(row, matrix + j * size, j)) / matrix[j * size + j];
    const double square = row[i] - k.dot(row, row, i);
    if (!(square > 0 && std::isfinite(square))) return false;
    row[i] = std::sqrt(square);
  }
  for_blocks(n_rows, kRowsSolvedPerTask, n_threads, [&](int64_t, int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      double* const x = rows + r * size;
      for (int64_t i = 0; i < size; ++i) x[i] = (x[i] - k.dot(matrix + i * size, x, i)) / matrix[i * size + i];
      for (int64_t i = size - 1; i >= 0; --i) {
        x[i] /= matrix[i * size + i];
        k.add_scaled(x, -x[i], matrix + i * size, i);
      }
    }
  });
  return true;
}

#define MIRRORLDA_INSTANTIATE(T)                                                                                                  \
  template void mirror_rows<T>(const Rows<T>&, const int32_t*, int64_t, const T*, int64_t, const T*, double*, int);               \
  template void settle<T>(const Rows<T>&, int64_t, double*, int);                                                                 \
  template bool row_sums<T>(const int32_t*, int64_t, const int64_t*, const int32_t*, const T*, const T*, int64_t, int64_t, int64_t,  \
                            double*);                                                                                             \
  template void count_rows<T>(T*, const int32_t*, int64_t, const T*, int64_t, int, const T*, const T*, T, double*, int);           \
  template void column_squares<T>(const T*, int64_t, int64_t, int, double*, int);                                                 \
  template void scores<T>(const T*, const T*, int64_t, int, int, T*, int);                                                        \
  template void back_scores<T>(const T*, const T*, int64_t, int, int, T*, int);                                                   \
  template void outer<T>(const T*, const T*, int64_t, int, int, int64_t, double*, int);

MIRRORLDA_INSTANTIATE(float)
MIRRORLDA_INSTANTIATE(double)

}  // namespace mirrorlda
