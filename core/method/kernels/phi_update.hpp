// The learning step on rows of Phi, phi <- (phi exp(clip(-rate g)) + c) / C, in coordinates z with phi = M (z + B); see
// method/learning_step.hpp.
//
// A row without a data gradient only follows phi <- (phi + c) / C, which moves M and B and leaves z, so it is not visited. A row that has
// one gets the z of phi exp(clip(-rate g)), as of the step before, and its own + c and / C in the same way.
#pragma once

#include "method/kernels/kernels.hpp"
#include "method/kernels/simd.hpp"

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

template <class T>
struct Mirrored {
  Vec<T> z, average, change;
};

// What mirror_row makes of the vector from topic k on, of which n topics are there.
template <class T>
MIRRORLDA_INLINE Mirrored<T> mirrored(const T* z, const T* average, const FrameVectors<T>& f, const T* gradient, const T* rate, int k, int n) {
  const Vec<T> low = broadcast<T>(T(-kClip)), high = broadcast<T>(T(kClip)), floor = broadcast<T>(T(kFloor)), zero{};
  const Vec<T> old_z = load_part<T>(z + k, n);
  const Vec<T> phi = old_z * load_part<T>(f.M + k, n) + load_part<T>(f.MB + k, n);
  const Vec<T> exponent = min<T>(max<T>(-load_part<T>(rate + k, n) * load_part<T>(gradient + k, n), low), high);
  const Vec<T> next = max<T>(max<T>(phi, zero) * exp<T>(exponent), floor);
  const Vec<T> new_z = next * load_part<T>(f.M_inverse + k, n) - load_part<T>(f.B + k, n);
  return {new_z, average ? load_part<T>(average + k, n) + (old_z - new_z) * load_part<T>(f.A + k, n) : zero, next - phi};
}

// Equivalent to phi = M * z + MB; new = np.maximum(np.maximum(phi, 0) * np.exp(np.clip(-rate * gradient, -1, 1)), FLOOR);
//   change += new - phi; average += (z - (new / M - B)) * A; z[:] = new / M - B
template <class T>
inline void mirror_row(T* z, T* average, const FrameVectors<T>& frame, const T* gradient, const T* rate, T* change, int n_topics) {
  constexpr int W = kWidth<T>;
  const FrameVectors<T> f = frame;
  const auto write = [&](const Mirrored<T>& to, int k, int n) MIRRORLDA_INLINE_LAMBDA {
    store_part<T>(z + k, to.z, n);
    if (average) store_part<T>(average + k, to.average, n);
  };
  if (n_topics < W) {
    const Mirrored<T> only = mirrored<T>(z, average, f, gradient, rate, 0, n_topics);
    write(only, 0, n_topics);
    store_part<T>(change, load_part<T>(change, n_topics) + only.change, n_topics);
    return;
  }
  // The last vector overlaps the one before it: it is read before that is written, and counts the topics that are its own.
  const int rest = n_topics % W, last = n_topics - W;
  Mirrored<T> tail{};
  if (rest) tail = mirrored<T>(z, average, f, gradient, rate, last, W);
  for (int k = 0; k + W <= n_topics; k += W) {
    const Mirrored<T> here = mirrored<T>(z, average, f, gradient, rate, k, W);
    write(here, k, W);
    store<T>(change + k, load<T>(change + k) + here.change);
  }
  if (!rest) return;
  T own[2 * W] = {};
  for (int i = W; i < 2 * W; ++i) own[i] = T(1);
  write(tail, last, W);
  store<T>(change + last, load<T>(change + last) + tail.change * load<T>(own + rest));
}

// Equivalent to average[:] = np.maximum(average + z * A + E, 0); z[:] = np.maximum(M * z + MB, 0)
template <class T>
inline void settle_row(T* z, T* average, const FrameVectors<T>& frame, int n_topics) {
  const FrameVectors<T> f = frame;
  const Vec<T> zero{};
  for (int k = 0; k < n_topics; k += kWidth<T>) {
    const int n = n_topics - k;
    const Vec<T> old_z = load_part<T>(z + k, n);
    if (average) {
      const Vec<T> rest = old_z * load_part<T>(f.A + k, n) + load_part<T>(f.E + k, n);
      store_part<T>(average + k, max<T>(load_part<T>(average + k, n) + rest, zero), n);
    }
    store_part<T>(z + k, max<T>(old_z * load_part<T>(f.M + k, n) + load_part<T>(f.MB + k, n), zero), n);
  }
}

// Equivalent to out[:] = weight * np.log(np.maximum(now + shift, floor) / np.maximum(before + shift, floor)), with a positive floor
template <class T>
inline void log_ratio(const T* now, const T* before, const T* shift, const T* floor, T weight, T* out, int n_topics) {
  for (int k = 0; k < n_topics; k += kWidth<T>) {
    const int n = n_topics - k;
    const Vec<T> moved = load_part<T>(shift + k, n);
    // Beyond the last topic both are the same.
    const Vec<T> lowest = n >= kWidth<T> ? load<T>(floor + k) : max<T>(load_part<T>(floor + k, n), broadcast<T>(T(kFloor)));
    const Vec<T> a = max<T>(load_part<T>(now + k, n) + moved, lowest), b = max<T>(load_part<T>(before + k, n) + moved, lowest);
    store_part<T>(out + k, log<T>(a / b) * weight, n);
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
