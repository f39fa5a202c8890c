// The learning step on rows of Phi: phi <- (phi exp(clip(-rate g)) + c) / C, column by column.
//
// Rows without a data gradient only follow phi <- (phi + c) / C, which is affine, so they are not visited: a row keeps the step at which it
// was last written, and `catch_up` applies the composed map (and adds what the running average missed) when the row is read again. A row
// that has a gradient is written as phi exp(clip(-rate g)), as of the step before, and gets its own + c and / C in the same way.
#pragma once

#include "kernels.hpp"
#include "lanes.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

// The last vector of a row may be short: a loop over its few elements is quicker than a call of memcpy.
template <class T>
MIRRORLDA_INLINE Vec<T> load_part(const T* from, int n) {
  if (n >= kWidth<T>) return load<T>(from);
  T lanes[kWidth<T>] = {};
  for (int i = 0; i < n; ++i) lanes[i] = from[i];
  return load<T>(lanes);
}

template <class T>
MIRRORLDA_INLINE void store_part(T* to, Vec<T> v, int n) {
  if (n >= kWidth<T>) return store<T>(to, v);
  T lanes[kWidth<T>];
  store<T>(lanes, v);
  for (int i = 0; i < n; ++i) to[i] = lanes[i];
}

// Equivalent to average += map.average_scale * row + map.average_shift; row[:] = map.scale * row + map.shift
template <class T>
inline void catch_up(T* row, T* average, const RowMap<T>& map, int n_topics) {
  const RowMap<T> m = map;
  for (int k = 0; k < n_topics; k += kWidth<T>) {
    const int n = n_topics - k;
    const Vec<T> phi = load_part<T>(row + k, n);
    if (average) {
      const Vec<T> missed = load_part<T>(m.average_scale + k, n) * phi + load_part<T>(m.average_shift + k, n);
      store_part<T>(average + k, load_part<T>(average + k, n) + missed, n);
    }
    store_part<T>(row + k, load_part<T>(m.scale + k, n) * phi + load_part<T>(m.shift + k, n), n);
  }
}

// Equivalent to before += row; row[:] = np.maximum(row * np.exp(np.clip(-rate * gradient, -1, 1)), FLOOR); after += row
template <class T>
inline void mirror_row(T* row, const T* gradient, const T* rate, T* before, T* after, int n_topics) {
  const Vec<T> low = broadcast<T>(T(-kClip)), high = broadcast<T>(T(kClip)), floor = broadcast<T>(T(kFloor));
  for (int k = 0; k < n_topics; k += kWidth<T>) {
    const int n = n_topics - k;
    const Vec<T> phi = load_part<T>(row + k, n);
    const Vec<T> exponent = min<T>(max<T>(-load_part<T>(rate + k, n) * load_part<T>(gradient + k, n), low), high);
    const Vec<T> next = max<T>(phi * exp<T>(exponent), floor);
    store_part<T>(row + k, next, n);
    store_part<T>(before + k, load_part<T>(before + k, n) + phi, n);
    store_part<T>(after + k, load_part<T>(after + k, n) + next, n);
  }
}

// Equivalent to sums += row.astype(float) ** 2
template <class T>
inline void add_squares(const T* row, double* sums, int n_topics) {
  for (int k = 0; k < n_topics; ++k) sums[k] += double(row[k]) * double(row[k]);
}

template <class T>
inline T dot(const T* a, const T* b, int64_t n) {
  Vec<T> total{};
  int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) total += load<T>(a + i) * load<T>(b + i);
  T result = sum<T>(total);
  for (; i < n; ++i) result += a[i] * b[i];
  return result;
}

// Equivalent to to += factor * from
template <class T>
inline void add_scaled(T* to, T factor, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) store<T>(to + i, load<T>(to + i) + load<T>(from + i) * factor);
  for (; i < n; ++i) to[i] += factor * from[i];
}

}  // namespace mirrorlda::MIRRORLDA_ISA
