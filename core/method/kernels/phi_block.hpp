// A document's rows of Phi, copied once into a small dense block that stays in cache for all layers, and the products with it.
//
// The block is stored across words: panels of up to four vectors of words, each panel (n_topics, panel words), so that both products of a
// layer run over words with no padding of topics: P theta needs no horizontal sum, and P^T w one for every `width` topics.
#pragma once

#include "method/kernels/kernels.hpp"
#include "method/kernels/simd.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

constexpr int kPanel = 4;

// `width` topics of one row; the last row may end before the vector does.
template <class T>
MIRRORLDA_INLINE Vec<T> load_topics(const T* row, int n_topics, const T* end) {
  if (row + kWidth<T> <= end) return load<T>(row);
  Vec<T> v{};
  memcpy(&v, row, sizeof(T) * n_topics);
  return v;
}

// Asks for the share of layer `layer` of the rows that the next document needs: of Phi, and of its gradient unless `rows` is NULL.
template <class T>
MIRRORLDA_INLINE void prefetch_next(const Inference<T>& model, const Document<T>& document, T* const* rows, int layer) {
  const int64_t share = (document.n_next + model.n_layers - 1) / model.n_layers, from = layer * share;
  for (int64_t i = from; i < from + share && i < document.n_next; ++i) {
    const T* const row = model.z + int64_t(document.next_indices[i]) * model.n_topics;
    for (int k = 0; k < model.n_topics; k += 64 / int(sizeof(T))) prefetch(row + k);
    if (rows)
      for (int k = 0; k < model.n_topics; k += 64 / int(sizeof(T))) prefetch(rows[i] + k);
  }
}

// Copies rows `indices` of Phi. Words beyond n are padded with the last row; their counts are zero.
template <class T>
inline void gather(T* block, const Inference<T>& model, const int32_t* indices, int64_t n) {
  constexpr int W = kWidth<T>;
  const T *const z = model.z, *const scale = model.scale, *const shift = model.shift;
  const int n_topics = model.n_topics;
  const Vec<T> floor = broadcast<T>(T(kFloor));
  const int64_t n_vectors = round_up<T>(n) / W;
  const T* end = z + model.n_words * n_topics;
  for (int64_t j = 0; j < n_vectors; ++j) {
    const int64_t panel = j / kPanel;
    const int64_t in_panel = n_vectors - panel * kPanel < kPanel ? n_vectors - panel * kPanel : kPanel;
    T* to = block + (panel * kPanel * n_topics + j % kPanel) * W;
    const T* row[W];
    MIRRORLDA_UNROLL
    for (int i = 0; i < W; ++i) row[i] = z + int64_t(indices[j * W + i < n ? j * W + i : n - 1]) * n_topics;
    for (int64_t ahead = (j + 1) * W; ahead < (j + 2) * W && ahead < n; ++ahead)
      for (int k = 0; k < n_topics; k += 64 / int(sizeof(T))) prefetch(z + int64_t(indices[ahead]) * n_topics + k);
    Vec<T> v[W];
    if (n_topics < W) {
      MIRRORLDA_UNROLL
      for (int i = 0; i < W; ++i) v[i] = max<T>(load_topics<T>(row[i], n_topics, end) * load<T>(scale) + load<T>(shift), floor);
      transpose<T>(v);
      for (int i = 0; i < n_topics; ++i) store<T>(to + i * in_panel * W, v[i]);
      continue;
    }
    // The last vectors overlap those before them where n_topics is not a multiple of the width.
    for (int k = 0; k < n_topics; k += W) {
      const int from = k + W <= n_topics ? k : n_topics - W;
      const Vec<T> by = load<T>(scale + from), more = load<T>(shift + from);
      MIRRORLDA_UNROLL
      for (int i = 0; i < W; ++i) v[i] = max<T>(load<T>(row[i] + from) * by + more, floor);
      transpose<T>(v);
      MIRRORLDA_UNROLL
      for (int i = 0; i < W; ++i) store<T>(to + (from + i) * in_panel * W, v[i]);
    }
  }
}

// Counts padded with zeros to n_padded.
template <class T>
MIRRORLDA_INLINE void copy_counts(T* to, const T* counts, int64_t n, int64_t n_padded) {
  memcpy(to, counts, sizeof(T) * n);
  for (int64_t i = n; i < n_padded; ++i) to[i] = T(0);
}

// r = P a, with enough independent sums to hide the latency of a multiply-add.
template <class T, int NV>
MIRRORLDA_INLINE void product_panel(const T* panel, int n_topics, const T* a, Vec<T>* r) {
  constexpr int W = kWidth<T>, kSets = 8 / NV;
  Vec<T> sums[kSets][NV] = {};
  int k = 0;
  for (; k + kSets <= n_topics; k += kSets)
    MIRRORLDA_UNROLL
    for (int s = 0; s < kSets; ++s) {
      const Vec<T> ak = broadcast<T>(a[k + s]);
      MIRRORLDA_UNROLL
      for (int j = 0; j < NV; ++j) sums[s][j] += load<T>(panel + ((k + s) * NV + j) * W) * ak;
    }
  for (; k < n_topics; ++k) {
    const Vec<T> ak = broadcast<T>(a[k]);
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) sums[0][j] += load<T>(panel + (k * NV + j) * W) * ak;
  }
  MIRRORLDA_UNROLL
  for (int j = 0; j < NV; ++j) {
    r[j] = sums[0][j];
    MIRRORLDA_UNROLL
    for (int s = 1; s < kSets; ++s) r[j] += sums[s][j];
  }
}

// sums (n_topics vectors) += P^T w, or = for the first panel, still spread over the lanes; `Topics` chains of multiply-adds run interleaved.
template <class T, int NV, int Topics, bool IsFirst>
MIRRORLDA_INLINE void transposed_topics(const T* panel, const Vec<T>* w, T* sums) {
  constexpr int W = kWidth<T>;
  Vec<T> s[Topics] = {};
  if constexpr (!IsFirst) {
    MIRRORLDA_UNROLL
    for (int i = 0; i < Topics; ++i) s[i] = load<T>(sums + i * W);
  }
  MIRRORLDA_UNROLL
  for (int j = 0; j < NV; ++j) {
    MIRRORLDA_UNROLL
    for (int i = 0; i < Topics; ++i) s[i] += load<T>(panel + (i * NV + j) * W) * w[j];
  }
  MIRRORLDA_UNROLL
  for (int i = 0; i < Topics; ++i) store<T>(sums + i * W, s[i]);
}

template <class T, int NV, bool IsFirst>
MIRRORLDA_INLINE void transposed_panel(const T* panel, int n_topics, const Vec<T>* w, T* sums) {
  constexpr int W = kWidth<T>;
  int k = 0;
  for (; k + 8 <= n_topics; k += 8) transposed_topics<T, NV, 8, IsFirst>(panel + k * NV * W, w, sums + k * W);
  for (; k < n_topics; ++k) transposed_topics<T, NV, 1, IsFirst>(panel + k * NV * W, w, sums + k * W);
}

template <class T, int NV>
MIRRORLDA_INLINE void transposed_panel(const T* panel, int n_topics, const Vec<T>* w, bool is_first, T* sums) {
  if (is_first)
    transposed_panel<T, NV, true>(panel, n_topics, w, sums);
  else
    transposed_panel<T, NV, false>(panel, n_topics, w, sums);
}

// All sums zero: those beyond n_topics stay so, and those of a document without words.
template <class T>
MIRRORLDA_INLINE void clear(T* sums, int n_topics) {
  memset(sums, 0, sizeof(T) * round_up<T>(n_topics) * kWidth<T>);
}

// Horizontal sums of the vectors left by transposed_panel.
template <class T>
MIRRORLDA_INLINE void collect(const T* sums, int n_topics, T* out) {
  constexpr int W = kWidth<T>;
  for (int k = 0; k < n_topics; k += W) {
    Vec<T> v[W];
    MIRRORLDA_UNROLL
    for (int i = 0; i < W; ++i) v[i] = load<T>(sums + (k + i) * W);
    store<T>(out + k, sum_each<T>(v));
  }
}

// Calls visit.template operator()<NV>(panel, first word) for the panels of words [from, to); both are multiples of a panel, or the end.
template <class T, class Visit>
MIRRORLDA_INLINE void for_panels(const T* block, int64_t from, int64_t to, int n_topics, Visit&& visit) {
  constexpr int W = kWidth<T>;
  int64_t word = from;
  for (; word + kPanel * W <= to; word += kPanel * W) visit.template operator()<kPanel>(block + word * n_topics, word);
  switch ((to - word) / W) {
    case 3: visit.template operator()<3>(block + word * n_topics, word); break;
    case 2: visit.template operator()<2>(block + word * n_topics, word); break;
    case 1: visit.template operator()<1>(block + word * n_topics, word); break;
  }
}

}  // namespace mirrorlda::MIRRORLDA_ISA
