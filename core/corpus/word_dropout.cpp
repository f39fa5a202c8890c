#include "corpus/word_dropout.hpp"

#include <algorithm>

#include "parallel/random.hpp"
#include "parallel/thread_pool.hpp"

namespace mirrorlda {
namespace {

constexpr int64_t kDocumentsPerTask = 64;

// Decides which entries of one document stay.
class Keeper {
 public:
  Keeper(const Thinning& thinning, int64_t place) : key_(mix(thinning.seed ^ mix(uint64_t(thinning.first + place)))), limit_(thinning.fraction * 4294967296.0) {}
  bool keeps(int64_t entry) const { return double(mix(key_ + uint64_t(entry)) >> 32) >= limit_; }

 private:
  uint64_t key_;
  double limit_;
};

template <class Work>
void for_documents(int64_t n_docs, int n_threads, const Work& work) {
  parallel_for((n_docs + kDocumentsPerTask - 1) / kDocumentsPerTask, n_threads, [&](int64_t task, int) {
    for (int64_t d = task * kDocumentsPerTask; d < std::min(n_docs, (task + 1) * kDocumentsPerTask); ++d) work(d);
  });
}

}  // namespace

void thinned_indptr(const int64_t* indptr, const int64_t* documents, int64_t n_docs, const Thinning& thinning, int64_t* out, int n_threads) {
  for_documents(n_docs, n_threads, [&](int64_t d) {
    const int64_t n = indptr[documents[d] + 1] - indptr[documents[d]];
    const Keeper keeper(thinning, d);
    int64_t n_kept = thinning.fraction > 0 ? 0 : n;
    if (thinning.fraction > 0)
      for (int64_t i = 0; i < n; ++i) n_kept += keeper.keeps(i);
    out[d + 1] = n_kept;
  });
  out[0] = 0;
  for (int64_t d = 0; d < n_docs; ++d) out[d + 1] += out[d];
}

template <class T>
void thinned_entries(const int64_t* indptr, const int32_t* indices, const T* counts, const int64_t* documents, int64_t n_docs,
                     const double* word_weights, const Thinning& thinning, const int64_t* out_indptr, int32_t* out_indices, T* out_counts,
                     int n_threads) {
  const T scale = T(1 / (1 - thinning.fraction));
  for_documents(n_docs, n_threads, [&](int64_t d) {
    const int64_t begin = indptr[documents[d]], n = indptr[documents[d] + 1] - begin;
    const Keeper keeper(thinning, d);
    int64_t to = out_indptr[d];
    for (int64_t i = 0; i < n; ++i) {
      if (thinning.fraction > 0 && !keeper.keeps(i)) continue;
      const int32_t word = indices[begin + i];
      out_indices[to] = word;
      out_counts[to++] = counts[begin + i] * scale * (word_weights ? T(word_weights[word]) : T(1));
    }
  });
}

template void thinned_entries(const int64_t*, const int32_t*, const float*, const int64_t*, int64_t, const double*, const Thinning&,
                              const int64_t*, int32_t*, float*, int);
template void thinned_entries(const int64_t*, const int32_t*, const double*, const int64_t*, int64_t, const double*, const Thinning&,
                              const int64_t*, int32_t*, double*, int);

}  // namespace mirrorlda
