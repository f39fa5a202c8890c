// A batch of documents through the kernels, on several threads, with the same bits for any number of them.
//
// Forward: documents are independent. Reverse: documents are grouped in blocks that depend on the batch only; each block adds its rows in
// the order of its documents, and blocks are added along a fixed binary tree over block numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "method/dispatch.hpp"
#include "parallel/thread_pool.hpp"

namespace mirrorlda {

// Documents of a block of a batch. Sums over documents are added up along a binary tree over block numbers, so that parts of the batch that
// begin and end with a subtree can be summed anywhere: their sums, added up along the rest of the tree, are those of the batch to the bit.
int64_t block_docs(int64_t n_docs);

// Aligned memory that grows and is reused; its content is lost when it grows.
template <class T>
class Buffer {
 public:
  T* resize(int64_t n) {
    if (n > capacity_) {
      data_.reset();
      capacity_ = 0;
      data_.reset(static_cast<T*>(::operator new(sizeof(T) * n, kAlignment)));
      capacity_ = n;
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t capacity_ = 0;
};

// Rows `documents` of a CSR matrix.
template <class T>
struct Batch {
  const int64_t* indptr;
  const int32_t* indices;
  const T* counts;
  const int64_t* documents;
  int64_t n_docs;
  int64_t n_words;

  int64_t begin(int64_t d) const { return indptr[documents[d]]; }
  int64_t size(int64_t d) const { return indptr[documents[d] + 1] - begin(d); }
};

template <class T>
struct Topics {
  const T* z;               // (n_words, n_topics)
  const T *scale, *shift;  // (n_topics,) of Phi = max(scale z + shift, kFloor); NULL: 1 and 0
  int n_topics;
  const T* alpha;  // (n_topics,)
  int n_layers;
  StepRule rule;
  double tol;
  bool wants_objective;
  const double* steps;  // (n_docs, n_layers) for StepRule::given
};

template <class T>
class Engine {
 public:
  // Fills theta (n_docs, n_topics). With `keep`, the trace of every document is kept for reverse() and the accessors below.
  void forward(const Batch<T>& batch, const Topics<T>& topics, bool keep, int n_threads, T* theta);

  // What topics say of documents whose proportions theta (n_docs, n_topics) are given: losses (n_docs,) are -ln p(x | theta, Phi) and
  // grad_theta (n_docs, n_topics) their gradients. A trace of no layers is kept, for reverse() with word_weights and no grad_theta.
  // Phi is read with `scale` and `shift` as in Topics.
  void decode(const Batch<T>& batch, const T* phi, const T* scale, const T* shift, int n_topics, const T* theta, int n_threads,
              double* losses, T* grad_theta);

  // Gradients of the batch that was kept. grad_theta (n_docs, n_topics), word_weights (n_docs,) and grad_counts (entries of the batch,
  // document by document) may be NULL. `rows` are the batch's distinct words; the gradient of these rows of Phi is left in gradient().
  // Blocks have `per_block` documents, for a batch block_docs(n_docs) of them.
  void reverse(const T* grad_theta, const T* word_weights, T* grad_counts, const int32_t* rows, int64_t n_rows, int64_t per_block,
               int n_threads);

  const T* gradient() const { return gradient_.get(); }
  int64_t gradient_stride() const { return padded_topics_; }

  void copy_trace(T* thetas, double* step_sizes, double* objective, int32_t* n_trials) const;
  void copy_objective(double* objective) const;
  int64_t n_docs() const { return batch_.n_docs; }
  int64_t n_words() const { return batch_.n_words; }
  int n_layers() const { return topics_.n_layers; }
  int n_topics() const { return topics_.n_topics; }
  int64_t n_entries() const { return entries_.empty() ? 0 : entries_.back(); }

 private:
  // The rows that occur in one block are numbered as they come: `slot` of each of the batch's rows, or -1. The sum of a row lies in the
  // batch's gradient if no block before has the row, otherwise in `more`.
  struct Block {
    std::vector<int32_t> slot;
    std::vector<T*> sums;
    int64_t n_slots = 0;
    Buffer<T> more;
  };
  struct Worker {
    Buffer<char> scratch;
    Buffer<T> trace;
    std::vector<double> doubles;
    std::vector<int32_t> trials;
    std::vector<T*> row;
  };

  // What `forward` and `decode` need: vectors over topics, where each document's part of a trace begins, and every thread's memory.
  void prepare(const Batch<T>& batch, const Topics<T>& topics, bool keep, int n_threads);
  Inference<T> inference() const;
  // Document d, in a task that goes on with d + 1 if that is below `end`. Where Phi fits in a cache, asking early costs more than it saves.
  Document<T> document(int64_t d, int64_t end) const {
    const int64_t begin = batch_.begin(d), next = std::min(d + 1, end - 1);
    return {batch_.indices + begin,
            batch_.counts + begin,
            batch_.size(d),
            topics_.steps ? topics_.steps + d * topics_.n_layers : nullptr,
            batch_.indices + batch_.begin(next),
            next > d && is_large_ ? batch_.size(next) : 0};
  }
  DocumentTrace<T> kept_trace(int64_t d) const;
  bool find_slots(Block& block, int64_t from, int64_t to, const int32_t* rows, int64_t n_rows);
  bool find_owners(int64_t n_blocks, int64_t n_rows, int n_threads);
  void add_block(int64_t number, int64_t from, int64_t to, const T* grad_theta, const T* word_weights, T* grad_counts, Worker& worker);
  void add_up(int64_t n_blocks, int64_t n_rows, int n_threads);

  Batch<T> batch_{};
  Topics<T> topics_{};
  int64_t padded_topics_ = 0, longest_ = 0;
  bool is_large_ = false;
  std::vector<T> alpha_minus_1_, floor_, scale_, shift_;
  std::vector<int64_t> entries_, padded_words_;  // running sums over documents
  Buffer<T> raw_, r_inverse_;
  Buffer<double> steps_, objective_;
  Buffer<int32_t> n_trials_;
  std::vector<Worker> workers_;
  std::vector<Block> blocks_;
  std::vector<int32_t> place_;  // of words among the rows; left over from other batches for all other words
  std::vector<int32_t> slots_;  // of the batch's entries, each in its block
  std::vector<int32_t> owner_;  // the first block that has the row
  Buffer<T> gradient_;
};

// Distinct words of a batch, ascending. Throws std::invalid_argument for a word that is not in [0, n_words).
void distinct_words(const int64_t* indptr, const int32_t* indices, const int64_t* documents, int64_t n_docs, int64_t n_words,
                    int n_threads, std::vector<int32_t>& words);

}  // namespace mirrorlda
