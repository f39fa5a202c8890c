// Vectors of one instruction set: loads, reductions, transposes, exp and logarithms, without intrinsics.
//
// Compiled once for every instruction set, in a namespace of its own, and without templates of the standard library: the linker must
// never merge code of a newer instruction set into the path of an older machine.
#pragma once

#include <cstdint>
#include <cstring>

// Stores may alias anything, so a closure or a record that is not inlined away is read again after each of them.
// Small fixed loops over vectors are unrolled in full: only then do arrays of vectors live in registers.
#if defined(__clang__)
#define MIRRORLDA_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define MIRRORLDA_UNROLL _Pragma("GCC unroll 16")
#else
#define MIRRORLDA_UNROLL
#endif
#if defined(__GNUC__)
#define MIRRORLDA_INLINE inline __attribute__((always_inline))
#define MIRRORLDA_INLINE_LAMBDA __attribute__((always_inline))
#else
#define MIRRORLDA_INLINE inline
#define MIRRORLDA_INLINE_LAMBDA
#endif

namespace mirrorlda::MIRRORLDA_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

#if defined(MIRRORLDA_SCALAR)
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using Vec = float;
  using Int = int32_t;
  static constexpr int width = 1;
};
template <>
struct Lanes<double> {
  using Vec = double;
  using Int = int64_t;
  static constexpr int width = 1;
};
#else
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float Vec __attribute__((vector_size(kVectorBytes)));
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  static constexpr int width = kVectorBytes / 4;
};
template <>
struct Lanes<double> {
  typedef double Vec __attribute__((vector_size(kVectorBytes)));
  typedef int64_t Int __attribute__((vector_size(kVectorBytes)));
  static constexpr int width = kVectorBytes / 8;
};
#endif

template <class T>
using Vec = typename Lanes<T>::Vec;
template <class T>
using Int = typename Lanes<T>::Int;
template <class T>
constexpr int kWidth = Lanes<T>::width;

template <class T>
constexpr int64_t round_up(int64_t n) {
  return (n + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
}

template <class T>
MIRRORLDA_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
MIRRORLDA_INLINE void store(T* to, Vec<T> v) {
  memcpy(to, &v, sizeof v);
}

MIRRORLDA_INLINE void prefetch(const void* at) {
#if defined(__GNUC__)
  __builtin_prefetch(at);
#endif
}

template <class T>
MIRRORLDA_INLINE Vec<T> broadcast(T x) {
  return x - Vec<T>{};
}

template <class T>
MIRRORLDA_INLINE Vec<T> max(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}

template <class T>
MIRRORLDA_INLINE Vec<T> min(Vec<T> a, Vec<T> b) {
  return a < b ? a : b;
}

template <class T>
MIRRORLDA_INLINE Vec<T> abs(Vec<T> a) {
  return max<T>(a, -a);
}

#if defined(MIRRORLDA_SCALAR)
template <class T>
MIRRORLDA_INLINE T sum(T v) {
  return v;
}
template <class T>
MIRRORLDA_INLINE T largest(T v) {
  return v;
}
template <class T>
MIRRORLDA_INLINE T first(T v) {
  return v;
}
template <class T>
MIRRORLDA_INLINE T sum_each(const T* v) {
  return v[0];
}
template <class T>
MIRRORLDA_INLINE void transpose(T*) {}
#else
template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

template <class T, int Step, int... I>
MIRRORLDA_INLINE Vec<T> partners(Vec<T> v, Indices<I...>) {
  return __builtin_shufflevector(v, v, (I ^ Step)...);
}

template <class T, int Step = kWidth<T> / 2>
MIRRORLDA_INLINE T sum(Vec<T> v) {
  if constexpr (Step > 0) return sum<T, Step / 2>(v + partners<T, Step>(v, typename MakeIndices<kWidth<T>>::type{}));
  return v[0];
}

template <class T>
MIRRORLDA_INLINE T first(Vec<T> v) {
  return v[0];
}

template <class T, int Step = kWidth<T> / 2>
MIRRORLDA_INLINE T largest(Vec<T> v) {
  if constexpr (Step > 0) return largest<T, Step / 2>(max<T>(v, partners<T, Step>(v, typename MakeIndices<kWidth<T>>::type{})));
  return v[0];
}

// Stage of a butterfly: lanes whose bit `Step` is clear come from a and from b's counterpart, in place of each other.
template <int W, int Step, bool High>
constexpr int butterfly_index(int i) {
  const int from = (i & ~Step) | (High ? Step : 0);
  return (i & Step) ? W + from : from;
}

template <class T, int Step, bool High, int... I>
MIRRORLDA_INLINE Vec<T> butterfly(Vec<T> a, Vec<T> b, Indices<I...>) {
  return __builtin_shufflevector(a, b, butterfly_index<kWidth<T>, Step, High>(I)...);
}

template <class T, int Step>
MIRRORLDA_INLINE void butterfly_stage(Vec<T>* v) {
  using All = typename MakeIndices<kWidth<T>>::type;
  MIRRORLDA_UNROLL
  for (int i = 0; i < kWidth<T>; ++i) {
    if (i & Step) continue;
    const Vec<T> a = v[i], b = v[i + Step];
    v[i] = butterfly<T, Step, false>(a, b, All{});
    v[i + Step] = butterfly<T, Step, true>(a, b, All{});
  }
  if constexpr (Step > 1) butterfly_stage<T, Step / 2>(v);
}

// Equivalent to v = v.T for a (width, width) block of vectors.
template <class T>
MIRRORLDA_INLINE void transpose(Vec<T>* v) {
  if constexpr (kWidth<T> > 1) butterfly_stage<T, kWidth<T> / 2>(v);
}

template <class T, int Step>
MIRRORLDA_INLINE Vec<T> sum_pairs(const Vec<T>* v, int at) {
  using All = typename MakeIndices<kWidth<T>>::type;
  if constexpr (Step == kWidth<T>) {
    return v[at];
  } else {
    const Vec<T> a = sum_pairs<T, 2 * Step>(v, at), b = sum_pairs<T, 2 * Step>(v, at + Step);
    return butterfly<T, Step, false>(a, b, All{}) + butterfly<T, Step, true>(a, b, All{});
  }
}

// Equivalent to v.sum(axis=1) for a (width, width) block of vectors.
template <class T>
MIRRORLDA_INLINE Vec<T> sum_each(const Vec<T>* v) {
  return sum_pairs<T, 1>(v, 0);
}
#endif

template <class To, class From>
MIRRORLDA_INLINE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
struct Format;
template <>
struct Format<float> {
  static constexpr int mantissa = 23, bias = 127, exp_terms = 6, atanh_terms = 4;
  static constexpr float shifter = 12582912.0f, ln2_high = 0.693145751953125f, ln2_low = 1.42860682030941723212e-6f, exp_lowest = -87.0f;
};
template <>
struct Format<double> {
  static constexpr int mantissa = 52, bias = 1023, exp_terms = 13, atanh_terms = 12;
  static constexpr double shifter = 6755399441055744.0, ln2_high = 6.93147180369123816490e-1, ln2_low = 1.90821492927058770002e-10,
                          exp_lowest = -708.0;
};

// Equivalent to np.exp(np.maximum(x, lowest)) for x <= 1; NaN gives exp(lowest).
template <class T>
MIRRORLDA_INLINE Vec<T> exp(Vec<T> x) {
  using F = Format<T>;
  x = max<T>(x, broadcast<T>(F::exp_lowest));
  const Vec<T> shifted = x * T(1.44269504088896340736) + F::shifter;
  const Vec<T> n = shifted - F::shifter;
  const Vec<T> r = (x - n * F::ln2_high) - n * F::ln2_low;
  T coefficient = 1;
  T coefficients[F::exp_terms + 1];
  MIRRORLDA_UNROLL
  for (int i = 0; i <= F::exp_terms; ++i) {
    coefficients[i] = coefficient;
    coefficient /= T(i + 1);
  }
  Vec<T> p = broadcast<T>(coefficients[F::exp_terms]);
  MIRRORLDA_UNROLL
  for (int i = F::exp_terms - 1; i >= 0; --i) p = p * r + coefficients[i];
  const Int<T> power = bits<Int<T>>(shifted) << F::mantissa;
  return bits<Vec<T>>(bits<Int<T>>(p) + power);
}

// q = 2^e m with m in [1/sqrt 2, sqrt 2): returns m and, in exponent, e.
template <class T>
MIRRORLDA_INLINE Vec<T> split_exponent(Vec<T> q, Vec<T>& exponent) {
  using F = Format<T>;
  const Int<T> one = bits<Int<T>>(broadcast<T>(T(1)));
  const Int<T> root_half = bits<Int<T>>(broadcast<T>(T(0.70710678118654752440)));
  const Int<T> raised = bits<Int<T>>(q) + (one - root_half);
  const Int<T> e = (raised >> F::mantissa) - F::bias;
#if defined(MIRRORLDA_SCALAR)
  exponent = T(e);
#else
  exponent = __builtin_convertvector(e, Vec<T>);
#endif
  return bits<Vec<T>>(bits<Int<T>>(q) - (e << F::mantissa));
}

// 2 atanh(s) - 2 s, by its series.
template <class T>
MIRRORLDA_INLINE Vec<T> atanh_tail(Vec<T> s) {
  constexpr int terms = Format<T>::atanh_terms;
  const Vec<T> s2 = s * s;
  Vec<T> p = broadcast<T>(T(2) / T(2 * terms + 1));
  MIRRORLDA_UNROLL
  for (int i = terms - 1; i >= 1; --i) p = p * s2 + T(2) / T(2 * i + 1);
  return p * s2 * s;
}

// Equivalent to np.log(q) for positive normal q.
template <class T>
MIRRORLDA_INLINE Vec<T> log(Vec<T> q) {
  Vec<T> e;
  const Vec<T> m = split_exponent<T>(q, e);
  const Vec<T> s = (m - T(1)) / (m + T(1));
  return e * T(0.69314718055994530942) + (s + s + atanh_tail<T>(s));
}

// Equivalent to t - np.log1p(t) for |t| <= 0.41, without cancellation: with s = t / (2 + t), log1p(t) = 2 atanh(s) and t - 2 s = t s.
template <class T>
MIRRORLDA_INLINE Vec<T> log1p_gap_near(Vec<T> t) {
  const Vec<T> s = t / (t + T(2));
  return t * s - atanh_tail<T>(s);
}

constexpr double kNear = 0.41;

// Equivalent to t - np.log1p(t) for t > -1, where |t| is not small.
template <class T>
MIRRORLDA_INLINE Vec<T> log1p_gap(Vec<T> t) {
  return t - log<T>(max<T>(t + T(1), broadcast<T>(T(1e-30))));
}

}  // namespace mirrorlda::MIRRORLDA_ISA
