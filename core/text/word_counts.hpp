// Words of texts counted: over all of them, to choose a vocabulary, and in each, given one. No result depends on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "text/spilled_words.hpp"
#include "text/tokenize.hpp"
#include "text/word_table.hpp"

namespace mirrorlda {

using Texts = std::vector<std::string_view>;

// Counts of some documents, their columns ascending.
struct CountRows {
  std::vector<int64_t> sizes;  // entries of each document
  std::vector<int32_t> columns;
  std::vector<float> counts;

  void clear() { sizes.clear(), columns.clear(), counts.clear(); }
};

// Word counts of `texts`, block by block; what is not in `vocabulary` is left out.
std::vector<CountRows> count_texts(const TextDefinition& definition, const WordTable& vocabulary, const Texts& texts, int n_threads);

struct Selection {
  WordTable words;
  std::vector<int64_t> totals;
  uint64_t n_distinct = 0;  // among which was chosen
};

// Which words a vocabulary takes: the `max_words` most frequent, equally frequent ones by code point, of those in `min_docs` to `max_docs` texts. A
// phrase, which has a space in it, is in `min_phrase_docs` of them at least.
struct Choice {
  uint64_t max_words, min_docs, min_phrase_docs, max_docs;
};

class WordCounts {
 public:
  // `memory`: bytes that counted words may take before they are spilled to `directory`. With `keep_documents` nothing is spilled, and the
  // counts of each document are kept for `documents`.
  WordCounts(const TextDefinition& definition, size_t memory, std::string directory, bool keep_documents);
  ~WordCounts();

  void add(const Texts& texts, int n_threads);
  // What was counted elsewhere, in `n_docs` other texts.
  void add(const std::vector<CountedWord>& counted, int64_t n_docs);
  // All words so far, in ascending order of their bytes. Not where documents are kept.
  void visit(const std::function<void(const CountedWord&)>& visit);
  int64_t n_docs();
  size_t n_runs();
  // Words in order of falling frequency, equally frequent ones by code point. More texts may be added afterwards.
  Selection select(const Choice& choice);
  // Counts of all texts so far: equal to count_texts.
  std::vector<CountRows> documents(const WordTable& vocabulary, int n_threads);

 private:
  class Worker;
  struct Block;

  void spill(Worker& worker);
  void gather_in_first();

  const TextDefinition definition_;
  const size_t memory_;
  const std::string directory_;
  const bool keep_documents_;
  std::mutex mutex_;       // one call at a time
  std::mutex runs_mutex_;  // workers spill when they have to
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<Block> blocks_;
  int64_t n_docs_ = 0;
};

}  // namespace mirrorlda
