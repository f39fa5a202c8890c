// Exact back-propagation over the trace of one document (Algorithm 4, xi form), the mirror image of `forward`.
//
// Layer by layer the gradient of Phi's rows is a sum of products of a vector over words and a vector over topics. The factors are
// collected, left (n_factors, words) and right (n_factors, topics), and multiplied once.
#pragma once

#include "method/kernels/kernels.hpp"
#include "method/kernels/phi_block.hpp"
#include "method/kernels/scratch.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

// rows[i] += sum_f left[f, i] right[f], for `Words` words from i and NV vectors of topics from k.
template <class T, int Words, int NV>
MIRRORLDA_INLINE void add_products(const T* left, int64_t n_padded, const T* right, int64_t padded_topics, int n_factors, int64_t i, int64_t k,
                         int64_t n, T** rows) {
  constexpr int W = kWidth<T>;
  Vec<T> sums[Words][NV] = {};
  for (int f = 0; f < n_factors; ++f) {
    Vec<T> b[NV];
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) b[j] = load<T>(right + f * padded_topics + k + j * W);
    MIRRORLDA_UNROLL
    for (int w = 0; w < Words; ++w) {
      const Vec<T> a = broadcast<T>(left[f * n_padded + i + w]);
      MIRRORLDA_UNROLL
      for (int j = 0; j < NV; ++j) sums[w][j] += b[j] * a;
    }
  }
  for (int w = 0; w < Words && i + w < n; ++w)
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) {
      T* to = rows[i + w] + k + j * W;
      store<T>(to, load<T>(to) + sums[w][j]);
    }
}

template <class T>
inline void scatter(const T* left, int64_t n_padded, const T* right, int64_t padded_topics, int n_factors, int64_t n, T** rows) {
  constexpr int W = kWidth<T>;
  // Eight to twelve independent sums: enough to hide the latency, few enough for the registers.
  constexpr int kFew = W < 4 ? W : 4, kMany = W < 8 ? W : 8;
  if (padded_topics == W) {
    for (int64_t i = 0; i < n; i += kMany) add_products<T, kMany, 1>(left, n_padded, right, W, n_factors, i, 0, n, rows);
    return;
  }
  for (int64_t i = 0; i < n; i += kFew) {
    for (int64_t ahead = i + kFew; ahead < i + 2 * kFew && ahead < n; ++ahead)
      for (int64_t k = 0; k < padded_topics; k += 64 / int64_t(sizeof(T))) prefetch(rows[ahead] + k);
    int64_t k = 0;
    for (; padded_topics - k == 3 * W || padded_topics - k > 4 * W; k += 3 * W)
      add_products<T, kFew, 3>(left, n_padded, right, padded_topics, n_factors, i, k, n, rows);
    for (; k < padded_topics; k += 2 * W) add_products<T, kFew, 2>(left, n_padded, right, padded_topics, n_factors, i, k, n, rows);
  }
}

// h = d loss / d theta_l, masked where the floor acted; v = raw * xi with xi = h - raw . h.
template <class T>
MIRRORLDA_INLINE void through_normaliser(const T* raw, int64_t padded_topics, const T* h, T* v) {
  constexpr int W = kWidth<T>;
  const Vec<T> floor = broadcast<T>(T(kFloor)), zero{};
  Vec<T> mean{};
  for (int64_t k = 0; k < padded_topics; k += W) {
    const Vec<T> weight = load<T>(raw + k);
    mean += weight > floor ? weight * load<T>(h + k) : zero;
  }
  const T total = sum<T>(mean);
  for (int64_t k = 0; k < padded_topics; k += W) {
    const Vec<T> weight = load<T>(raw + k);
    const Vec<T> masked = weight > floor ? load<T>(h + k) : zero;
    store<T>(v + k, weight * (masked - total));
  }
}

constexpr int64_t kPieceBytes = 20 << 10;

template <class T>
struct ReverseMemory {
  T *block, *counts, *h, *sums, *left, *right, *grad_counts;  // the last NULL where it is not wanted

  ReverseMemory(Scratch& scratch, int64_t n, int n_topics, int n_layers) {
    const int64_t n_padded = round_up<T>(n), padded_topics = round_up<T>(n_topics), n_factors = 2 * n_layers + 1;
    counts = scratch.take<T>(n_padded);
    grad_counts = scratch.take<T>(n_padded);
    h = scratch.take<T>(padded_topics);
    sums = scratch.take<T>(padded_topics * kWidth<T>);
    left = scratch.take<T>(n_padded * n_factors);
    right = scratch.take<T>(padded_topics * n_factors);
    block = scratch.take<T>(n_padded * n_topics);
  }
};

// One layer: adds its two factors, its part of the gradient of the counts, and turns h into the gradient of the layer below.
template <class T>
inline void reverse_layer(const Inference<T>& model, int64_t n_padded, const T* raw, const T* raw_below, const T* r_inverse, T step,
                          bool is_first, int factor, ReverseMemory<T>& work) {
  constexpr int W = kWidth<T>;
  const int K = model.n_topics;
  const int64_t padded_topics = round_up<T>(K);
  T* v = work.right + factor * padded_topics;
  T* theta = v + padded_topics;
  T* left_v = work.left + factor * n_padded;
  T* left_theta = left_v + n_padded;
  T* const grad_counts = work.grad_counts;
  if (!is_first) {
    for (int64_t k = 0; k < padded_topics; k += 64 / int64_t(sizeof(T))) prefetch(raw_below - padded_topics + k);
    for (int64_t i = 0; i < n_padded; i += 64 / int64_t(sizeof(T))) prefetch(r_inverse - n_padded + i);
  }
  through_normaliser<T>(raw, padded_topics, work.h, v);
  for (int64_t k = 0; k < padded_topics; k += W) store<T>(theta + k, max<T>(load<T>(raw_below + k), load<T>(model.floor + k)));
  // Both products of a piece run while it is in the first cache; within a piece nothing waits for a product to end.
  const int64_t piece = kPanel * W * (kPieceBytes / (int64_t(sizeof(T)) * kPanel * W * K) + 1);
  for (int64_t from = 0; from < n_padded; from += piece) {
    const int64_t to = from + piece < n_padded ? from + piece : n_padded;
    for_panels<T>(work.block, from, to, K, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
      Vec<T> u[NV];
      product_panel<T, NV>(panel, K, v, u);
      MIRRORLDA_UNROLL
      for (int j = 0; j < NV; ++j) {
        const int64_t at = word + j * W;
        const Vec<T> inverse = load<T>(r_inverse + at);
        const Vec<T> weight = load<T>(work.counts + at) * (inverse * step);
        const Vec<T> relative = u[j] * inverse;
        store<T>(left_v + at, weight);
        store<T>(left_theta + at, -weight * relative);
        if (grad_counts) store<T>(grad_counts + at, load<T>(grad_counts + at) + relative * step);
      }
    });
    if (is_first) continue;
    for_panels<T>(work.block, from, to, K, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
      Vec<T> u[NV];
      MIRRORLDA_UNROLL
      for (int j = 0; j < NV; ++j) u[j] = load<T>(left_theta + word + j * W);
      transposed_panel<T, NV>(panel, K, u, word == 0, work.sums);
    });
  }
  if (is_first) return;
  collect<T>(work.sums, K, work.h);
  for (int64_t k = 0; k < padded_topics; k += W) {
    const Vec<T> inverse = T(1) / max<T>(load<T>(theta + k), broadcast<T>(T(kFloor)));
    const Vec<T> scaled = load<T>(v + k) * inverse;
    store<T>(work.h + k, load<T>(work.h + k) + scaled * (T(1) - step * load<T>(model.alpha_minus_1 + k) * inverse));
  }
}

template <class T>
inline void reverse(const Inference<T>& model, const Document<T>& document, const DocumentTrace<T>& trace,
                    const DocumentGradient<T>& gradient, void* memory) {
  constexpr int W = kWidth<T>;
  const int K = model.n_topics, L = model.n_layers;
  const int64_t n_padded = round_up<T>(document.n), padded_topics = round_up<T>(K);
  Scratch scratch{memory};
  ReverseMemory<T> work(scratch, document.n, K, L);
  copy_counts<T>(work.counts, document.counts, document.n, n_padded);
  if (gradient.grad_counts)
    memset(work.grad_counts, 0, sizeof(T) * n_padded);
  else
    work.grad_counts = nullptr;
  int n_factors = 0;
  if (gradient.word_weight != 0) {
    // -ln p(x | theta_L, Phi) with theta_L held: -(x / r_L) theta_L^T, and -ln r_L for the counts.
    const T* r_inverse = trace.r_inverse + L * n_padded;
    for (int64_t i = 0; i < n_padded; i += W) {
      store<T>(work.left + i, load<T>(work.counts + i) * load<T>(r_inverse + i) * -gradient.word_weight);
      if (work.grad_counts) store<T>(work.grad_counts + i, log<T>(load<T>(r_inverse + i)) * gradient.word_weight);
    }
    for (int64_t k = 0; k < padded_topics; k += W)
      store<T>(work.right + k, max<T>(load<T>(trace.raw + L * padded_topics + k), load<T>(model.floor + k)));
    n_factors = 1;
  }
  if (gradient.grad_theta) {
    clear<T>(work.sums, K);
    gather<T>(work.block, model, document.indices, document.n);
    for (int64_t k = 0; k < padded_topics; ++k) work.h[k] = k < K ? gradient.grad_theta[k] : T(0);
    int lowest = 0;
    while (lowest < L && trace.steps[lowest] == 0) ++lowest;
    for (int layer = L - 1; layer >= lowest; --layer) {
      prefetch_next<T>(model, document, gradient.next_rows, layer);
      if (trace.steps[layer] == 0) continue;
      const T* raw_below = trace.raw + layer * padded_topics;
      reverse_layer<T>(model, n_padded, raw_below + padded_topics, raw_below, trace.r_inverse + layer * n_padded, T(trace.steps[layer]),
                       layer == lowest, n_factors, work);
      n_factors += 2;
    }
  }
  if (n_factors && gradient.rows)
    scatter<T>(work.left, n_padded, work.right, padded_topics, n_factors, document.n, gradient.rows);
  if (gradient.grad_counts) memcpy(gradient.grad_counts, work.grad_counts, sizeof(T) * document.n);
}

}  // namespace mirrorlda::MIRRORLDA_ISA
