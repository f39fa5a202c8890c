// The documents of a batch as one training step sees them: without a random part of their words, and with the words' weights.
#pragma once

#include <cstdint>

namespace mirrorlda {

// A document's entry is left out with probability `fraction`, by a hash of `seed`, the document's place in the batch and the entry's in it:
// the same for any number of threads. The documents at hand are those of the batch from `first` on.
struct Thinning {
  uint64_t seed;
  double fraction;
  int64_t first;
};

// Where each document begins, (n_docs + 1,), once entries have been left out.
void thinned_indptr(const int64_t* indptr, const int64_t* documents, int64_t n_docs, const Thinning& thinning, int64_t* out, int n_threads);

// The entries that stay. Equivalent, for those of document d, to counts * word_weights[indices] / (1 - fraction); NULL weights are all 1.
template <class T>
void thinned_entries(const int64_t* indptr, const int32_t* indices, const T* counts, const int64_t* documents, int64_t n_docs,
                     const double* word_weights, const Thinning& thinning, const int64_t* out_indptr, int32_t* out_indices, T* out_counts,
                     int n_threads);

}  // namespace mirrorlda
