#include "method/engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

namespace mirrorlda {
namespace {

// Few documents a task keep threads busy to the end; blocks are larger, since each has rows of its own to add up.
constexpr int64_t kDocumentsPerTask = 8, kDocumentsPerBlock = 128, kMostBlocks = 64, kRowsPerTask = 128, kRowsPerScan = 4096, kCacheBytes = 8 << 20;

// Asks for memory that is needed soon: documents of a shuffled batch, and what was kept of them, lie anywhere.
template <class T>
inline void prefetch(const T* from, int64_t n) {
#if defined(__GNUC__)
  for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(from + i);
#else
  (void)from, (void)n;
#endif
}

// mark[word] = 1 for every word; false if one is not in [0, n_words). One byte a word: plain stores do not wait for each other, as setting
// bits would, and threads may store the same value. The arguments stay in registers: a char store may alias whatever is in memory.
inline bool mark_words(const int32_t* indices, int64_t n, int64_t n_words, char* mark) {
  bool in_range = true;
  for (int64_t i = 0; i < n; ++i) {
    const bool known = indices[i] >= 0 && indices[i] < n_words;
    in_range &= known;
    char* const at = mark + (known ? indices[i] : 0);
#if defined(__GNUC__)
    __atomic_store_n(at, char(1), __ATOMIC_RELAXED);
#else
    std::atomic_ref<char>(*at).store(1, std::memory_order_relaxed);
#endif
  }
  return in_range;
}

int64_t tasks(int64_t n, int64_t per_task) { return (n + per_task - 1) / per_task; }

}  // namespace

int64_t block_docs(int64_t n_docs) { return std::max(kDocumentsPerBlock, tasks(n_docs, kMostBlocks)); }

void distinct_words(const int64_t* indptr, const int32_t* indices, const int64_t* documents, int64_t n_docs, int64_t n_words,
                    int n_threads, std::vector<int32_t>& words) {
  std::vector<uint64_t> seen((n_words + 7) / 8);
  char* const mark = reinterpret_cast<char*>(seen.data());
  std::atomic<bool> in_range{true};
  parallel_for(tasks(n_docs, kDocumentsPerBlock), n_threads, [&](int64_t task, int) {
    const int64_t last = std::min(n_docs, (task + 1) * kDocumentsPerBlock);
    for (int64_t d = task * kDocumentsPerBlock; d < last; ++d) {
      const int64_t ahead = documents[std::min(d + 4, last - 1)], row = documents[d];
      prefetch(indices + indptr[ahead], indptr[ahead + 1] - indptr[ahead]);
      if (!mark_words(indices + indptr[row], indptr[row + 1] - indptr[row], n_words, mark)) in_range = false;
    }
  });
  if (!in_range) throw std::invalid_argument("a word is out of range");
  words.clear();
  for (int64_t w = 0; w < int64_t(seen.size()); ++w)
    if (seen[w])
      for (int64_t word = w * 8; word < w * 8 + 8; ++word)
        if (mark[word]) words.push_back(int32_t(word));
}

template <class T>
Inference<T> Engine<T>::inference() const {
  return {topics_.z,     batch_.n_words, scale_.data(), shift_.data(), alpha_minus_1_.data(), floor_.data(), topics_.n_topics,
          topics_.n_layers, topics_.rule,   topics_.tol,   topics_.wants_objective};
}

template <class T>
DocumentTrace<T> Engine<T>::kept_trace(int64_t d) const {
  const int64_t L = topics_.n_layers;
  return {raw_.get() + d * (L + 1) * padded_topics_, r_inverse_.get() + padded_words_[d] * (L + 1), steps_.get() + d * L,
          objective_.get() + d * (L + 1), n_trials_.get() + d * L};
}

template <class T>
void Engine<T>::prepare(const Batch<T>& batch, const Topics<T>& topics, bool keep, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const int64_t K = topics.n_topics, L = topics.n_layers, D = batch.n_docs;
  const auto round_up = [&](int64_t n) { return (n + k.width - 1) / k.width * k.width; };
  batch_ = batch;
  topics_ = topics;
  padded_topics_ = round_up(K);
  alpha_minus_1_.assign(padded_topics_, T(0));
  floor_.assign(padded_topics_, T(0));
  is_large_ = batch.n_words * K * int64_t(sizeof(T)) > kCacheBytes;
  scale_.assign(padded_topics_, T(1));
  shift_.assign(padded_topics_, T(0));
  if (topics.scale) std::copy_n(topics.scale, K, scale_.begin());
  if (topics.shift) std::copy_n(topics.shift, K, shift_.begin());
  for (int64_t j = 0; j < K; ++j) {
    alpha_minus_1_[j] = topics.alpha ? topics.alpha[j] - T(1) : T(0);
    floor_[j] = T(kFloor);
  }
  entries_.assign(D + 1, 0);
  padded_words_.assign(D + 1, 0);
  longest_ = 0;
  for (int64_t d = 0; d < D; ++d) {
    entries_[d + 1] = entries_[d] + batch.size(d);
    padded_words_[d + 1] = padded_words_[d] + round_up(batch.size(d));
    longest_ = std::max(longest_, batch.size(d));
  }
  if (keep) {
    raw_.resize(D * (L + 1) * padded_topics_);
    r_inverse_.resize(padded_words_[D] * (L + 1));
    steps_.resize(D * L);
    objective_.resize(D * (L + 1));
    n_trials_.resize(D * L);
  }
  workers_.resize(std::max<size_t>(workers_.size(), n_threads));
  for (int w = 0; w < n_threads; ++w) {
    Worker& worker = workers_[w];
    worker.scratch.resize(k.scratch_bytes(longest_, int(K), int(L)));
    worker.trace.resize((L + 1) * (padded_topics_ + round_up(longest_)));
    worker.doubles.resize(2 * L + 1);
    worker.trials.resize(L);
  }
}

template <class T>
void Engine<T>::forward(const Batch<T>& batch, const Topics<T>& topics, bool keep, int n_threads, T* theta) {
  prepare(batch, topics, keep, n_threads);
  const Kernels<T>& k = kernels<T>();
  const int64_t K = topics.n_topics, L = topics.n_layers, D = batch.n_docs;
  const Inference<T> model = inference();
  parallel_for(tasks(D, kDocumentsPerTask), n_threads, [&](int64_t task, int w) {
    Worker& worker = workers_[w];
    const int64_t end = std::min(D, (task + 1) * kDocumentsPerTask);
    for (int64_t d = task * kDocumentsPerTask; d < end; ++d) {
      const DocumentTrace<T> trace = keep ? kept_trace(d)
                                          : DocumentTrace<T>{worker.trace.get(), worker.trace.get() + (L + 1) * padded_topics_,
                                                             worker.doubles.data(), worker.doubles.data() + L, worker.trials.data()};
      const int64_t next = std::min(d + 1, D - 1);
      prefetch(batch_.indices + batch_.begin(next), batch_.size(next));
      prefetch(batch_.counts + batch_.begin(next), batch_.size(next));
      k.forward(model, document(d, end), trace, worker.scratch.get());
      const T* raw = trace.raw + L * padded_topics_;
      for (int64_t j = 0; j < K; ++j) theta[d * K + j] = std::max(raw[j], T(kFloor));
    }
  });
}

template <class T>
void Engine<T>::decode(const Batch<T>& batch, const T* phi, const T* scale, const T* shift, int n_topics, const T* theta, int n_threads,
                       double* losses, T* grad_theta) {
  prepare(batch, {phi, scale, shift, n_topics, nullptr, 0, StepRule::given, 0, false, nullptr}, true, n_threads);
  const Kernels<T>& k = kernels<T>();
  const int64_t D = batch.n_docs;
  const Inference<T> model = inference();
  parallel_for(tasks(D, kDocumentsPerTask), n_threads, [&](int64_t task, int w) {
    const int64_t end = std::min(D, (task + 1) * kDocumentsPerTask);
    for (int64_t d = task * kDocumentsPerTask; d < end; ++d)
      losses[d] = k.decode(model, document(d, end), theta + d * n_topics, kept_trace(d), grad_theta + d * n_topics, workers_[w].scratch.get());
  });
}

// Numbers the block's rows as they come, with no branch on whether a row is new; false if a word is not among the rows.
template <class T>
bool Engine<T>::find_slots(Block& block, int64_t from, int64_t to, const int32_t* rows, int64_t n_rows) {
  block.slot.assign(n_rows, -1);
  int32_t* const slot = block.slot.data();
  const int32_t* const place = place_.data();
  int32_t n_slots = 0;
  for (int64_t d = from; d < to; ++d) {
    const int32_t* const indices = batch_.indices + batch_.begin(d);
    int32_t* const slots = slots_.data() + entries_[d];
    const int64_t n = batch_.size(d);
    for (int64_t i = 0; i < n; ++i) {
      const int32_t r = place[indices[i]];
      if (r >= n_rows || rows[r] != indices[i]) return false;
      const bool is_new = slot[r] < 0;
      slot[r] = is_new ? n_slots : slot[r];
      n_slots += is_new;
      slots[i] = slot[r];
    }
  }
  block.n_slots = n_slots;
  return true;
}

// False if a row occurs in no block.
template <class T>
bool Engine<T>::find_owners(int64_t n_blocks, int64_t n_rows, int n_threads) {
  owner_.resize(n_rows);
  std::atomic<bool> found{true};
  parallel_for(tasks(n_rows, kRowsPerScan), n_threads, [&](int64_t task, int) {
    const int64_t from = task * kRowsPerScan, to = std::min(n_rows, from + kRowsPerScan);
    int32_t* const owner = owner_.data();
    std::fill(owner + from, owner + to, -1);
    for (int64_t b = n_blocks - 1; b >= 0; --b) {
      const int32_t* const slot = blocks_[b].slot.data();
      for (int64_t r = from; r < to; ++r) owner[r] = slot[r] < 0 ? owner[r] : int32_t(b);
    }
    if (std::find(owner + from, owner + to, -1) != owner + to) found = false;
  });
  return found;
}

template <class T>
void Engine<T>::add_block(int64_t number, int64_t from, int64_t to, const T* grad_theta, const T* word_weights, T* grad_counts,
                          Worker& worker) {
  const Kernels<T>& k = kernels<T>();
  const Inference<T> model = inference();
  const int64_t stride = padded_topics_;
  Block& block = blocks_[number];
  // One more than there are takes what belongs to rows that are not here. Sums lie in the order of the rows, in which they are added up.
  block.sums.resize(block.n_slots + 1);
  T *more = block.more.resize(block.n_slots * stride), *sum = gradient_.get();
  for (size_t r = 0; r < block.slot.size(); ++r, sum += stride) {
    const bool is_here = block.slot[r] >= 0, is_owner = owner_[r] == number;
    block.sums[is_here ? block.slot[r] : block.n_slots] = is_owner ? sum : more;
    more += is_here && !is_owner ? stride : 0;
  }
  worker.row.resize(std::max<size_t>(worker.row.size(), 2 * longest_));
  T **row = worker.row.data(), **next_row = row + longest_;
  const auto find_rows = [&](int64_t d, T** found) {
    const int32_t* const slots = slots_.data() + entries_[d];
    for (int64_t i = 0; i < batch_.size(d); ++i) found[i] = block.sums[slots[i]];
  };
  find_rows(from, row);
  int64_t n_begun = 0;
  for (int64_t d = from; d < to; ++d) {
    const Document<T> doc = document(d, to);
    const int32_t* const slots = slots_.data() + entries_[d];
    for (int64_t i = 0; i < doc.n; ++i)
      if (slots[i] == n_begun) {
        std::memset(row[i], 0, sizeof(T) * stride);
        ++n_begun;
      }
    if (d + 1 < to) find_rows(d + 1, next_row);
    const DocumentGradient<T> gradient{grad_theta ? grad_theta + d * topics_.n_topics : nullptr, word_weights ? word_weights[d] : T(0),
                                       row, next_row, grad_counts ? grad_counts + entries_[d] : nullptr};
    // The reverse pass begins where the trace ends.
    const int64_t next = std::min(d + 1, to - 1), L = topics_.n_layers, n_padded = padded_words_[next + 1] - padded_words_[next];
    const int64_t from_layer = std::max<int64_t>(0, L - 1), n_layers = L + 1 - from_layer;
    prefetch(kept_trace(next).raw + from_layer * padded_topics_, n_layers * padded_topics_);
    prefetch(kept_trace(next).r_inverse + from_layer * n_padded, n_layers * n_padded);
    k.reverse(model, doc, kept_trace(d), gradient, worker.scratch.get());
    std::swap(row, next_row);
  }
}

template <class T>
void Engine<T>::reverse(const T* grad_theta, const T* word_weights, T* grad_counts, const int32_t* rows, int64_t n_rows,
                        int64_t per_block, int n_threads) {
  const int64_t D = batch_.n_docs, n_blocks = tasks(D, per_block);
  if (n_blocks > kMostBlocks) throw std::invalid_argument("a batch has more blocks than there can be");
  const Kernels<T>& k = kernels<T>();
  blocks_.resize(std::max<size_t>(blocks_.size(), n_blocks));
  workers_.resize(std::max<size_t>(workers_.size(), n_threads));
  for (int w = 0; w < n_threads; ++w) workers_[w].scratch.resize(k.scratch_bytes(longest_, topics_.n_topics, topics_.n_layers));
  place_.resize(batch_.n_words);
  for (int64_t r = 0; r < n_rows; ++r) place_[rows[r]] = int32_t(r);
  slots_.resize(entries_[D]);
  gradient_.resize(n_rows * padded_topics_);
  std::atomic<bool> found{true};
  parallel_for(n_blocks, n_threads, [&](int64_t number, int) {
    if (!find_slots(blocks_[number], number * per_block, std::min(D, (number + 1) * per_block), rows, n_rows)) found = false;
  });
  if (!found || !find_owners(n_blocks, n_rows, n_threads)) throw std::invalid_argument("rows must be the distinct words of the batch");
  parallel_for(n_blocks, n_threads, [&](int64_t number, int w) {
    add_block(number, number * per_block, std::min(D, (number + 1) * per_block), grad_theta, word_weights, grad_counts, workers_[w]);
  });
  add_up(n_blocks, n_rows, n_threads);
}

// The sum of a row's first block lies in the gradient already; the others are added along the tree.
template <class T>
void Engine<T>::add_up(int64_t n_blocks, int64_t n_rows, int n_threads) {
  const Kernels<T>& k = kernels<T>();
  const int64_t stride = padded_topics_;
  struct Part {
    int64_t block;
    T* sum;
  };
  // Adds up parts [begin, end), all of blocks [low, high), where high - low is a power of two.
  const auto tree = [&](const auto& self, const Part* begin, const Part* end, int64_t low, int64_t high) -> T* {
    if (end - begin == 1) return begin->sum;
    const int64_t middle = (low + high) / 2;
    const Part* split = std::partition_point(begin, end, [&](const Part& part) { return part.block < middle; });
    if (split == begin) return self(self, begin, end, middle, high);
    if (split == end) return self(self, begin, end, low, middle);
    T* left = self(self, begin, split, low, middle);
    k.add_scaled(left, T(1), self(self, split, end, middle, high), stride);
    return left;
  };
  int64_t span = 1;
  while (span < n_blocks) span *= 2;
  parallel_for(tasks(n_rows, kRowsPerTask), n_threads, [&](int64_t task, int) {
    // The parts of two rows: the sums of a word lie apart in the blocks' memory, each a miss if it is not asked for early.
    Part parts[2][kMostBlocks];
    int n_parts[2] = {0, 0};
    const int64_t from = task * kRowsPerTask, to = std::min(n_rows, from + kRowsPerTask);
    for (int64_t r = from; r <= to; ++r) {
      if (r < to) {
        int n = 0;
        for (int64_t b = owner_[r]; b < n_blocks; ++b)
          if (const int32_t slot = blocks_[b].slot[r]; slot >= 0) parts[r % 2][n++] = {b, blocks_[b].sums[slot]};
        n_parts[r % 2] = n;
        for (int p = 0; p < n && n > 1; ++p) prefetch(parts[r % 2][p].sum, stride);
      }
      const Part* const before = parts[(r + 1) % 2];
      if (r > from && n_parts[(r + 1) % 2] > 1) tree(tree, before, before + n_parts[(r + 1) % 2], 0, span);
    }
  });
}

template <class T>
void Engine<T>::copy_trace(T* thetas, double* step_sizes, double* objective, int32_t* n_trials) const {
  const int64_t D = batch_.n_docs, L = topics_.n_layers, K = topics_.n_topics;
  for (int64_t row = 0; row < D * (L + 1); ++row)
    for (int64_t j = 0; j < K; ++j) thetas[row * K + j] = std::max(raw_.get()[row * padded_topics_ + j], T(kFloor));
  std::copy_n(steps_.get(), D * L, step_sizes);
  std::copy_n(objective_.get(), D * (L + 1), objective);
  std::copy_n(n_trials_.get(), D * L, n_trials);
}

template <class T>
void Engine<T>::copy_objective(double* objective) const {
  for (int64_t d = 0; d < batch_.n_docs; ++d) objective[d] = objective_.get()[(d + 1) * (topics_.n_layers + 1) - 1];
}

template class Engine<float>;
template class Engine<double>;

}  // namespace mirrorlda
