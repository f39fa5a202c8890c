#include "text/word_counts.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "parallel/thread_pool.hpp"

namespace mirrorlda {
namespace {

constexpr int64_t kBlock = 64;  // documents that one thread takes at a time
// Merged into one when there are as many: each keeps a file open.
constexpr size_t kMostRuns = 64;

int64_t n_blocks_of(const Texts& texts) { return (int64_t(texts.size()) + kBlock - 1) / kBlock; }

Texts block_of(const Texts& texts, int64_t block) {
  const auto begin = texts.begin() + block * kBlock;
  return {begin, begin + std::min<int64_t>(kBlock, texts.end() - begin)};
}

// The counts of one document by column. A bit for each column that occurs, and one for each 64 of these: they come out ascending without
// sorting.
class DocumentCounts {
 public:
  explicit DocumentCounts(int64_t n_words) : counts_(n_words), bits_((n_words + 63) / 64), summary_((bits_.size() + 63) / 64) {}

  void add(int64_t column, uint32_t count) {
    counts_[column] += count;
    bits_[column >> 6] |= uint64_t(1) << (column & 63);
    summary_[column >> 12] |= uint64_t(1) << (column >> 6 & 63);
  }

  // Appends the document to `rows` and begins the next.
  void finish(CountRows& rows) {
    const size_t before = rows.columns.size();
    for (size_t s = 0; s < summary_.size(); ++s) {
      for (; summary_[s]; summary_[s] &= summary_[s] - 1) {
        const size_t b = s * 64 + std::countr_zero(summary_[s]);
        for (; bits_[b]; bits_[b] &= bits_[b] - 1) {
          const size_t column = b * 64 + std::countr_zero(bits_[b]);
          rows.columns.push_back(int32_t(column));
          rows.counts.push_back(float(counts_[column]));
          counts_[column] = 0;
        }
      }
    }
    rows.sizes.push_back(int64_t(rows.columns.size() - before));
  }

 private:
  std::vector<uint32_t> counts_;
  std::vector<uint64_t> bits_, summary_;
};

// Numbers of the words of a table, with what orders them at hand.
struct Ranked {
  uint64_t total, leading;
  uint32_t number;
};

auto by_word(const WordTable& words) {
  return [&words](const Ranked& a, const Ranked& b) {
    return a.leading != b.leading ? a.leading < b.leading : words[a.number] < words[b.number];
  };
}

auto by_frequency(const WordTable& words) {
  return [by_word = by_word(words)](const Ranked& a, const Ranked& b) { return a.total != b.total ? a.total > b.total : by_word(a, b); };
}

// Keeps the best `most` of the words that come, in ascending order of their bytes.
class Best {
 public:
  explicit Best(uint64_t most) : most_(most) {}

  void offer(const CountedWord& counted) {
    // Of equally frequent words the one that came first stays.
    if (full() && (most_ == 0 || counted.total <= heap_.front().total)) return;
    if (full()) {
      std::pop_heap(heap_.begin(), heap_.end(), worse_last);
      n_dropped_ += heap_.back().size;
      heap_.pop_back();
    }
    if (n_dropped_ > letters_.size() / 2 + 1024) repack();
    heap_.push_back({counted.total, letters_.size(), uint32_t(counted.word.size())});
    letters_.append(counted.word);
    std::push_heap(heap_.begin(), heap_.end(), worse_last);
  }

  void move_to(Selection& selection) {
    std::sort(heap_.begin(), heap_.end(), worse_last);
    for (const Item& item : heap_) {
      selection.words.insert(std::string_view(letters_).substr(item.place, item.size));
      selection.totals.push_back(int64_t(item.total));
    }
  }

 private:
  // In letters_, at `place`, which is in the order of the words.
  struct Item {
    uint64_t total, place;
    uint32_t size;
  };
  static bool worse_last(const Item& a, const Item& b) { return a.total != b.total ? a.total > b.total : a.place < b.place; }
  bool full() const { return heap_.size() == most_; }
  void repack() {
    std::string packed;
    std::sort(heap_.begin(), heap_.end(), [](const Item& a, const Item& b) { return a.place < b.place; });
    for (Item& item : heap_) {
      const size_t place = packed.size();
      packed.append(letters_, item.place, item.size);
      item.place = place;
    }
    std::make_heap(heap_.begin(), heap_.end(), worse_last);
    letters_ = std::move(packed);
    n_dropped_ = 0;
  }

  const uint64_t most_;
  std::vector<Item> heap_;
  std::string letters_;
  size_t n_dropped_ = 0;  // bytes of letters_ that no item needs
};

}  // namespace

std::vector<CountRows> count_texts(const TextDefinition& definition, const WordTable& vocabulary, const Texts& texts, int n_threads) {
  struct Worker {
    WordReader reader;
    DocumentCounts document;
    CountRows rows;
  };
  std::vector<std::optional<Worker>> workers(static_cast<size_t>(n_threads));
  std::vector<CountRows> out(static_cast<size_t>(n_blocks_of(texts)));
  parallel_for(int64_t(out.size()), n_threads, [&](int64_t block, int number) {
    auto& worker = workers[size_t(number)];
    if (!worker) worker.emplace(Worker{WordReader(definition), DocumentCounts(vocabulary.size()), {}});
    for (const std::string_view text : block_of(texts, block)) {
      worker->reader.read(text, [&](PaddedWord word) {
        const int64_t column = vocabulary.find(word);
        if (column >= 0) worker->document.add(column, 1);
      });
      worker->document.finish(worker->rows);
    }
    out[size_t(block)] = worker->rows;  // in just the memory that it needs
    worker->rows.clear();
  });
  return out;
}

// Documents of which the entries are the words' numbers with one worker.
struct WordCounts::Block {
  struct Entry {
    uint32_t number, count;
  };
  int worker = 0;
  std::vector<uint32_t> sizes;
  std::vector<Entry> entries;
};

class WordCounts::Worker {
 public:
  struct Tally {
    uint64_t total, docs;
    uint32_t last, place;  // the last document that has the word, and where it is among that document's entries
  };

  explicit Worker(const TextDefinition& definition) : reader_(definition) {}

  // With a block, the document becomes part of it.
  void count(std::string_view text, Block* block) {
    if (++document_ == 0) {
      for (Tally& tally : tallies) tally.last = 0;
      document_ = 1;
    }
    const size_t before = block ? block->entries.size() : 0;
    reader_.read(text, [&](PaddedWord word) {
      const size_t number = size_t(words.insert(word));
      if (number == tallies.size()) tallies.push_back({0, 0, 0, 0});
      Tally& tally = tallies[number];
      ++tally.total;
      if (tally.last != document_) {
        tally.last = document_;
        ++tally.docs;
        if (!block) return;
        tally.place = uint32_t(block->entries.size() - before);
        block->entries.push_back({uint32_t(number), 1});
      } else if (block) {
        ++block->entries[before + tally.place].count;
      }
    });
    if (block) block->sizes.push_back(uint32_t(block->entries.size() - before));
  }

  // What was counted elsewhere, in other documents.
  void add(const CountedWord& counted) {
    const size_t number = size_t(words.insert(counted.word));
    if (number == tallies.size()) tallies.push_back({0, 0, 0, 0});
    tallies[number].total += counted.total;
    tallies[number].docs += counted.docs;
  }

  size_t bytes() const { return words.bytes() + tallies.size() * sizeof(Tally); }
  void clear() {
    words.clear();
    tallies.clear();
  }

  WordTable words;
  std::vector<Tally> tallies;
  Block block;  // that is being read

 private:
  WordReader reader_;
  uint32_t document_ = 0;
};

WordCounts::WordCounts(const TextDefinition& definition, size_t memory, std::string directory, bool keep_documents)
    : definition_(definition), memory_(memory), directory_(std::move(directory)), keep_documents_(keep_documents) {}

WordCounts::~WordCounts() = default;

int64_t WordCounts::n_docs() {
  std::lock_guard lock(mutex_);
  return n_docs_;
}

size_t WordCounts::n_runs() {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

void WordCounts::add(const Texts& texts, int n_threads) {
  std::lock_guard lock(mutex_);
  while (workers_.size() < size_t(n_threads)) workers_.push_back(std::make_unique<Worker>(definition_));
  const size_t share = memory_ / workers_.size();
  const int64_t n_blocks = n_blocks_of(texts);
  const size_t first = blocks_.size();
  if (keep_documents_) blocks_.resize(first + size_t(n_blocks));
  parallel_for(n_blocks, n_threads, [&](int64_t task, int number) {
    Worker& worker = *workers_[size_t(number)];
    Block* const block = keep_documents_ ? &worker.block : nullptr;
    for (const std::string_view text : block_of(texts, task)) {
      worker.count(text, block);
      if (!block && worker.bytes() > share) spill(worker);
    }
    if (!block) return;
    block->worker = number;
    blocks_[first + size_t(task)] = *block;  // in just the memory that it needs
    block->sizes.clear();
    block->entries.clear();
  });
  n_docs_ += int64_t(texts.size());
}

void WordCounts::add(const std::vector<CountedWord>& counted, int64_t n_docs) {
  std::lock_guard lock(mutex_);
  if (workers_.empty()) workers_.push_back(std::make_unique<Worker>(definition_));
  Worker& worker = *workers_.front();
  for (const CountedWord& word : counted) {
    worker.add(word);
    if (!keep_documents_ && worker.bytes() > memory_) spill(worker);
  }
  n_docs_ += n_docs;
}

void WordCounts::visit(const std::function<void(const CountedWord&)>& visit) {
  std::lock_guard lock(mutex_);
  if (keep_documents_) throw std::logic_error("the counts of single documents are kept: their words stay where they are");
  for (auto& worker : workers_) spill(*worker);
  merge(runs_, visit);
}

void WordCounts::spill(Worker& worker) {
  if (worker.words.size() == 0) return;
  std::vector<Ranked> ranked(static_cast<size_t>(worker.words.size()));
  for (uint32_t i = 0; i < ranked.size(); ++i) ranked[i] = {0, worker.words.leading_bytes(i), i};
  std::sort(ranked.begin(), ranked.end(), by_word(worker.words));
  auto run = std::make_unique<Run>(directory_);
  for (const Ranked& r : ranked) run->write({worker.words[r.number], worker.tallies[r.number].total, worker.tallies[r.number].docs});
  run->end();
  worker.clear();
  std::lock_guard lock(runs_mutex_);
  runs_.push_back(std::move(run));
  if (runs_.size() < kMostRuns) return;
  auto merged = std::make_unique<Run>(directory_);
  merge(runs_, [&](const CountedWord& counted) { merged->write(counted); });
  merged->end();
  runs_.clear();
  runs_.push_back(std::move(merged));
}

// The counts of all workers with the first of them. Where documents are kept, the others keep their words' numbers.
void WordCounts::gather_in_first() {
  Worker& first = *workers_.front();
  for (size_t w = 1; w < workers_.size(); ++w) {
    Worker& other = *workers_[w];
    for (size_t i = 0; i < other.tallies.size(); ++i) {
      if (other.tallies[i].total == 0) continue;
      first.add({other.words[int64_t(i)], other.tallies[i].total, other.tallies[i].docs});
      other.tallies[i].total = other.tallies[i].docs = 0;
    }
    if (!keep_documents_) other.clear();
  }
}

Selection WordCounts::select(const Choice& choice) {
  std::lock_guard lock(mutex_);
  Selection selection;
  if (workers_.empty()) return selection;
  const auto chosen = [&](std::string_view word, uint64_t docs) {
    if (docs < choice.min_docs || docs > choice.max_docs) return false;
    return docs >= choice.min_phrase_docs || word.find(' ') == std::string_view::npos;
  };
  if (!runs_.empty()) {
    for (auto& worker : workers_) {
      spill(*worker);
      worker = std::make_unique<Worker>(definition_);  // its memory is needed here
    }
    Best best(choice.max_words);
    merge(runs_, [&](const CountedWord& counted) {
      ++selection.n_distinct;
      if (chosen(counted.word, counted.docs)) best.offer(counted);
    });
    best.move_to(selection);
    return selection;
  }
  gather_in_first();
  const Worker& all = *workers_.front();
  selection.n_distinct = uint64_t(all.words.size());
  std::vector<Ranked> ranked;
  for (uint32_t i = 0; i < all.tallies.size(); ++i)
    if (chosen(all.words[i], all.tallies[i].docs)) ranked.push_back({all.tallies[i].total, all.words.leading_bytes(i), i});
  if (choice.max_words < ranked.size()) {
    std::nth_element(ranked.begin(), ranked.begin() + int64_t(choice.max_words), ranked.end(), by_frequency(all.words));
    ranked.resize(choice.max_words);
  }
  std::sort(ranked.begin(), ranked.end(), by_frequency(all.words));
  for (const Ranked& r : ranked) {
    selection.words.insert(all.words[r.number]);
    selection.totals.push_back(int64_t(r.total));
  }
  return selection;
}

std::vector<CountRows> WordCounts::documents(const WordTable& vocabulary, int n_threads) {
  std::lock_guard lock(mutex_);
  if (!keep_documents_) throw std::logic_error("the counts of single documents were not kept");
  std::vector<std::vector<int32_t>> columns(workers_.size());
  for (size_t w = 0; w < workers_.size(); ++w) {
    const WordTable& words = workers_[w]->words;
    for (int64_t i = 0; i < words.size(); ++i) columns[w].push_back(int32_t(vocabulary.find(words[i])));
  }
  struct Reader {
    DocumentCounts document;
    CountRows rows;
  };
  std::vector<std::optional<Reader>> readers(static_cast<size_t>(n_threads));
  std::vector<CountRows> out(blocks_.size());
  parallel_for(int64_t(blocks_.size()), n_threads, [&](int64_t task, int number) {
    const Block& block = blocks_[size_t(task)];
    auto& reader = readers[size_t(number)];
    if (!reader) reader.emplace(Reader{DocumentCounts(vocabulary.size()), {}});
    const Block::Entry* entry = block.entries.data();
    for (const uint32_t size : block.sizes) {
      for (const Block::Entry* const end = entry + size; entry < end; ++entry) {
        const int32_t column = columns[size_t(block.worker)][entry->number];
        if (column >= 0) reader->document.add(column, entry->count);
      }
      reader->document.finish(reader->rows);
    }
    out[size_t(task)] = reader->rows;
    reader->rows.clear();
  });
  return out;
}

}  // namespace mirrorlda
