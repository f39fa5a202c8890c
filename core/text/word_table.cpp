#include "text/word_table.hpp"

#include <cstring>
#include <random>
#include <stdexcept>

namespace mirrorlda {
namespace {

constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;

uint64_t load(const char* eight) {
  uint64_t value;
  std::memcpy(&value, eight, 8);
  return value;
}

uint64_t folded_product(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  const auto product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
#else
  a = (a ^ (a >> 32)) * (b | 1);
  return (a ^ (a >> 29)) * kOdd;
#endif
}

// Drawn once for each process, so that no text can be written to make all its words collide. No result depends on it.
uint64_t secret() {
  static const uint64_t value = [] {
    std::random_device device;
    return uint64_t(device()) << 32 | device();
  }();
  return value;
}

uint32_t hash_of(PaddedWord word) {
  static const uint64_t a = secret(), b = secret() * kOdd | 1;
  uint64_t hash = a ^ word.size();
  size_t i = 0;
  do hash = folded_product(load(word.data() + i) ^ hash, b);
  while ((i += 8) < word.size());
  return uint32_t(hash ^ hash >> 32);
}

std::string padded(std::string_view word) { return std::string(word).append(PaddedWord::kPadding, '\0'); }

}  // namespace

WordTable::WordTable() : slots_(64, Slot{0, 0}) {}

bool WordTable::holds(const Entry& entry, PaddedWord word) const {
  if (entry.size != word.size()) return false;
  return word.size() <= 8 ? entry.place == load(word.data()) : std::memcmp(letters_.data() + entry.place, word.data(), word.size()) == 0;
}

int64_t WordTable::find(PaddedWord word) const {
  const uint32_t hash = hash_of(word);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i].number; i = (i + 1) & mask)
    if (slots_[i].hash == hash && holds(entries_[slots_[i].number - 1], word)) return int64_t(slots_[i].number) - 1;
  return -1;
}

int64_t WordTable::insert(PaddedWord word) {
  const uint32_t hash = hash_of(word);
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  for (; slots_[i].number; i = (i + 1) & mask)
    if (slots_[i].hash == hash && holds(entries_[slots_[i].number - 1], word)) return int64_t(slots_[i].number) - 1;
  if (word.size() > UINT32_MAX) throw std::length_error("a word is longer than 4 GB");
  if (entries_.size() >= UINT32_MAX - 1) throw std::length_error("more than 4,294,967,294 distinct words");
  uint64_t place = letters_.size();
  if (word.size() <= 8)
    place = load(word.data());
  else
    letters_.append(word.data(), word.size());
  entries_.push_back({place, uint32_t(word.size())});
  slots_[i] = {hash, uint32_t(entries_.size())};
  if (entries_.size() * 3 > slots_.size() * 2) grow();
  return size() - 1;
}

int64_t WordTable::insert(std::string_view word) {
  const std::string copy = padded(word);
  return insert(PaddedWord(copy.data(), word.size()));
}

int64_t WordTable::find(std::string_view word) const {
  const std::string copy = padded(word);
  return find(PaddedWord(copy.data(), word.size()));
}

void WordTable::grow() {
  std::vector<Slot> larger(slots_.size() * 2, Slot{0, 0});
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (!slot.number) continue;
    size_t i = slot.hash & mask;
    while (larger[i].number) i = (i + 1) & mask;
    larger[i] = slot;
  }
  slots_.swap(larger);
}

uint64_t WordTable::leading_bytes(int64_t number) const {
  const std::string_view word = (*this)[number];
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | (i < word.size() ? uint8_t(word[i]) : 0);
  return value;
}

void WordTable::clear() {
  entries_.clear();
  letters_.clear();
  slots_.assign(slots_.size(), Slot{0, 0});
}

}  // namespace mirrorlda
