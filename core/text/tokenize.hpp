// Text to words. The definition: normalisation form C, then lower case, then every longest run of letters, marks and numbers (general
// categories L, M, N) is a word; stop words are left out; with bigrams, two words that are then neighbours are one more, joined by a space.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.hpp"
#include "text/word_table.hpp"

namespace mirrorlda {

struct TextDefinition {
  bool lowercase = true, bigrams = false;
  WordTable stop_words = {};
};

// A stop word is itself read as text: "Don't" leaves out the words "don" and "t".
TextDefinition text_definition(bool lowercase, bool bigrams, const std::vector<std::string>& stop_words);

// Words of texts, one at a time; one thread's working memory.
class WordReader {
 public:
  explicit WordReader(const TextDefinition& definition);

  // Calls visit(PaddedWord) for each word of `text`.
  template <class Visit>
  void read(std::string_view text, Visit&& visit) {
    text = unicode::nfc(text, normalised_);
    size_t neighbour = 0;  // the size of the word before, which begins pair_
    split(text, [&](PaddedWord word) {
      if (definition_.stop_words.size() && definition_.stop_words.find(word) >= 0) return;
      visit(word);
      if (!definition_.bigrams) return;
      pair_.resize(neighbour);
      if (neighbour) {
        pair_.append(1, ' ').append(word.data(), word.size() + PaddedWord::kPadding);
        visit(PaddedWord(pair_.data(), pair_.size() - PaddedWord::kPadding));
      }
      pair_.assign(word.data(), word.size());
      neighbour = word.size();
    });
  }

 private:
  template <class Visit>
  void split(std::string_view text, Visit&& visit) {
    const char *p = text.data(), *const end = p + text.size();
    for (size_t n = 0;;) {
      if (n + kReserve > word_.size()) word_.resize(2 * word_.size());
      const size_t letters = read_ascii(p, end, word_.data() + n);
      p += letters;
      n += letters;
      if (letters == 8) continue;
      if (p < end && uint8_t(*p) >= 0x80) {
        const size_t added = read_character(text, p, n);
        n += added;
        if (added) continue;
      } else {
        ++p;
      }
      if (n) visit(PaddedWord(word_.data(), n));
      n = 0;
      if (p >= end) return;
    }
  }

  // Writes the letters and digits at p, at most eight, to `out`, and zeros behind them up to 16 bytes; returns how many they are.
  size_t read_ascii(const char* p, const char* end, char* out) const {
    constexpr uint64_t kOnes = 0x0101010101010101u, kHigh = 0x80 * kOnes;
    uint64_t bytes = 0;
    std::memcpy(&bytes, p, end - p >= 8 ? 8 : size_t(end - p));
    if constexpr (std::endian::native == std::endian::big) bytes = reversed(bytes);
    // The high bit of each byte says whether the byte is in a range: no byte of these sums reaches the next.
    const uint64_t low = bytes & ~kHigh, folded = low | 0x20 * kOnes;
    const uint64_t letter = (folded + (0x80 - 'a') * kOnes) & ~(folded + (0x7F - 'z') * kOnes);
    const uint64_t digit = (low + (0x80 - '0') * kOnes) & ~(low + (0x7F - '9') * kOnes);
    const uint64_t others = ~((letter | digit) & ~bytes) & kHigh;
    const int n = std::countr_zero(others) / 8;
    uint64_t word = bytes | ((letter & kHigh) >> 2 & lower_);
    if (n < 8) word &= (uint64_t(1) << 8 * n) - 1;
    if constexpr (std::endian::native == std::endian::big) word = reversed(word);
    // Written whole, so that what reads it next need not wait for two writes.
    const uint64_t zero = 0;
    std::memcpy(out, &word, 8);
    std::memcpy(out + 8, &zero, 8);
    return size_t(n);
  }

  static constexpr uint64_t reversed(uint64_t x) {
    uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | (x >> 8 * i & 0xFF);
    return out;
  }

  // Adds the character at p, which moves behind it, to the word of n bytes; returns how many bytes it has there, 0 for a separator.
  size_t read_character(std::string_view text, const char*& p, size_t n);

  static constexpr size_t kReserve = 32;  // what one step may write behind a word

  const TextDefinition& definition_;
  const uint64_t lower_;  // the bits that make capitals small
  std::vector<char> word_ = std::vector<char>(256);
  std::string normalised_, pair_;
};

}  // namespace mirrorlda
