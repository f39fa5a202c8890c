// What topics say of the words of one document whose proportions are given: -ln p(x | theta, Phi), its gradient with respect to theta, and the
// trace of no layers, from which `reverse` takes the gradient with respect to Phi.
#pragma once

#include "method/kernels/kernels.hpp"
#include "method/kernels/phi_block.hpp"
#include "method/kernels/scratch.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

template <class T>
struct DecodeMemory {
  T *counts, *sums, *g, *block;

  DecodeMemory(Scratch& scratch, int64_t n, int n_topics) {
    const int64_t n_padded = round_up<T>(n), padded_topics = round_up<T>(n_topics);
    counts = scratch.take<T>(n_padded);
    sums = scratch.take<T>(padded_topics * kWidth<T>);
    g = scratch.take<T>(padded_topics);
    block = scratch.take<T>(n_padded * n_topics);
  }
};

// Equivalent to r = phi[indices] @ theta; -(counts * np.log(r)).sum(), with grad_theta[:] = -(counts / r) @ phi[indices]
template <class T>
inline double decode(const Inference<T>& model, const Document<T>& document, const T* theta, const DocumentTrace<T>& trace, T* grad_theta,
                     void* memory) {
  constexpr int W = kWidth<T>;
  const int K = model.n_topics;
  const int64_t n_padded = round_up<T>(document.n), padded_topics = round_up<T>(K);
  Scratch scratch{memory};
  DecodeMemory<T> work(scratch, document.n, K);
  copy_counts<T>(work.counts, document.counts, document.n, n_padded);
  for (int64_t k = 0; k < padded_topics; ++k) trace.raw[k] = k < K ? (theta[k] > T(kFloor) ? theta[k] : T(kFloor)) : T(0);
  gather<T>(work.block, model, document.indices, document.n);
  clear<T>(work.sums, K);
  Vec<T> surprise{};
  for_panels<T>(work.block, 0, n_padded, K, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
    Vec<T> r[NV], u[NV];
    product_panel<T, NV>(panel, K, trace.raw, r);
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) {
      const Vec<T> inverse = T(1) / r[j], count = load<T>(work.counts + word + j * W);
      store<T>(trace.r_inverse + word + j * W, inverse);
      surprise += count * log<T>(inverse);
      u[j] = count * inverse;
    }
    transposed_panel<T, NV>(panel, K, u, word == 0, work.sums);
  });
  collect<T>(work.sums, K, work.g);
  for (int k = 0; k < K; ++k) grad_theta[k] = -work.g[k];
  return double(sum<T>(surprise));
}

}  // namespace mirrorlda::MIRRORLDA_ISA
