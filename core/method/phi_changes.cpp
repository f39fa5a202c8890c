#include "method/phi_changes.hpp"

#include <algorithm>

#include "method/dispatch.hpp"

namespace mirrorlda {
namespace {

inline float sum_of(float a, float b) { return a + b; }
inline uint16_t sum_of(uint16_t a, uint16_t b) { return upper_half(from_upper_half(a) + from_upper_half(b)); }

}  // namespace

template <class T>
void log_changes(const T* z, const int32_t* rows, int64_t n_rows, int n_topics, const T* before, const T* shift, const T* floor, T weight,
                 uint16_t* halves) {
  const Kernels<T>& k = kernels<T>();
  std::vector<T> logs(n_topics);
  for (int64_t i = 0; i < n_rows; ++i) {
    k.log_ratio(z + rows[i] * int64_t(n_topics), before + i * n_topics, shift, floor, weight, logs.data(), n_topics);
    for (int t = 0; t < n_topics; ++t) halves[i * n_topics + t] = upper_half(float(logs[t]));
  }
}

template <class V>
void add_rows(const SparseRows<V>& left, const SparseRows<V>& right, int64_t width, const std::vector<int32_t>& rows, V* values) {
  int64_t i = 0, j = 0;
  for (const int32_t row : rows) {
    const bool in_left = i < left.n_rows && left.rows[i] == row, in_right = j < right.n_rows && right.rows[j] == row;
    const V *const a = left.values + i * width, *const b = right.values + j * width;
    if (in_left && in_right)
      for (int64_t t = 0; t < width; ++t) values[t] = sum_of(a[t], b[t]);
    else
      std::copy_n(in_left ? a : b, width, values);
    i += in_left;
    j += in_right;
    values += width;
  }
}

template void log_changes<float>(const float*, const int32_t*, int64_t, int, const float*, const float*, const float*, float, uint16_t*);
template void log_changes<double>(const double*, const int32_t*, int64_t, int, const double*, const double*, const double*, double, uint16_t*);
template void add_rows<float>(const SparseRows<float>&, const SparseRows<float>&, int64_t, const std::vector<int32_t>&, float*);
template void add_rows<uint16_t>(const SparseRows<uint16_t>&, const SparseRows<uint16_t>&, int64_t, const std::vector<int32_t>&, uint16_t*);

}  // namespace mirrorlda
