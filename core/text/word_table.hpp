// A set of words, numbered in the order in which they came.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mirrorlda {

// UTF-8, with eight zero bytes behind it: words are hashed and compared eight bytes at a time.
class PaddedWord {
 public:
  static constexpr size_t kPadding = 8;
  // `letters` must have the eight zero bytes.
  PaddedWord(const char* letters, size_t size) : letters_(letters), size_(size) {}
  const char* data() const { return letters_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {letters_, size_}; }

 private:
  const char* letters_;
  size_t size_;
};

class WordTable {
 public:
  WordTable();
  int64_t size() const { return int64_t(entries_.size()); }
  // The number of a word, or -1.
  int64_t find(PaddedWord word) const;
  // The number of a word, which is size() where the word is new.
  int64_t insert(PaddedWord word);
  int64_t insert(std::string_view word);
  int64_t find(std::string_view word) const;
  // Valid until the next insertion.
  std::string_view operator[](int64_t number) const {
    const Entry& entry = entries_[size_t(number)];
    return {entry.size <= 8 ? reinterpret_cast<const char*>(&entry.place) : letters_.data() + entry.place, entry.size};
  }
  // The first eight bytes as a number that orders words as their bytes do, as far as these go.
  uint64_t leading_bytes(int64_t number) const;
  // Memory in use.
  size_t bytes() const { return entries_.size() * sizeof(Entry) + slots_.size() * sizeof(Slot) + letters_.size(); }
  // No words; the memory stays for new ones.
  void clear();

 private:
  // Up to eight bytes, most words, stand in `place` itself; the others in letters_, at `place`.
  struct Entry {
    uint64_t place;
    uint32_t size;
  };
  struct Slot {
    uint32_t hash, number;  // number + 1; 0: free
  };

  bool holds(const Entry& entry, PaddedWord word) const;
  void grow();

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;
  std::string letters_;
};

}  // namespace mirrorlda
