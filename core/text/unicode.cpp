#include "text/unicode.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <vector>

namespace mirrorlda::unicode {
namespace {

// The arithmetic of Hangul syllables: The Unicode Standard, section 3.12.
constexpr uint32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr uint32_t nLeading = 19, nVowels = 21, nTrailing = 28, nSyllables = nLeading * nVowels * nTrailing;

struct Character {
  uint32_t c;
  uint8_t combining;
};

// The first character that normalisation may change, or that may change what is before it.
const char* find_unstable(const char* p, const char* end) {
  while (p < end) {
    for (uint64_t eight; end - p >= 8; p += 8) {
      std::memcpy(&eight, p, 8);
      if (eight & 0x8080808080808080u) break;
    }
    if (p == end) break;
    const char* begin = p;
    if (record(decode(p)).flags & kUnstable) return begin;
  }
  return end;
}

void decompose(uint32_t c, std::vector<Character>& out) {
  if (c - kSyllables < nSyllables) {
    const uint32_t s = c - kSyllables, t = s % nTrailing;
    out.push_back({kLeading + s / (nVowels * nTrailing), 0});
    out.push_back({kVowels + s % (nVowels * nTrailing) / nTrailing, 0});
    if (t) out.push_back({kTrailing + t, 0});
    return;
  }
  const auto found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                                      [](const Decomposition& d, uint32_t value) { return d.composed < value; });
  if (found == std::end(kDecompositions) || found->composed != c) return out.push_back({c, record(c).combining});
  for (uint32_t i = 0; i < found->size; ++i) {
    const uint32_t part = kDecomposed[found->begin + i];
    out.push_back({part, record(part).combining});
  }
}

// 0 where the two do not compose.
uint32_t compose(uint32_t first, uint32_t second) {
  if (first - kLeading < nLeading && second - kVowels < nVowels)
    return kSyllables + ((first - kLeading) * nVowels + (second - kVowels)) * nTrailing;
  if (first - kSyllables < nSyllables && (first - kSyllables) % nTrailing == 0 && second - kTrailing - 1 < nTrailing - 1)
    return first + (second - kTrailing);
  const auto found = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
                                      [](const Composition& c, const auto& pair) { return std::pair(c.first, c.second) < pair; });
  return found != std::end(kCompositions) && found->first == first && found->second == second ? found->composed : 0;
}

void append_composed(std::vector<Character>& characters, std::string& out) {
  for (auto p = characters.begin(); p != characters.end();) {
    const auto last = std::find_if(p, characters.end(), [](const Character& x) { return x.combining == 0; });
    std::stable_sort(p, last, [](const Character& a, const Character& b) { return a.combining < b.combining; });
    p = last == characters.end() ? last : last + 1;
  }
  size_t n = 0, starter = 0;
  int before = 256;  // the combining class of what stands between the starter and the next character; 256: there is no starter
  for (const Character x : characters) {
    const uint32_t composed = before == 0 || before < x.combining ? compose(characters[starter].c, x.c) : 0;
    if (composed) {
      characters[starter].c = composed;
      continue;
    }
    if (x.combining == 0) {
      starter = n;
      before = 0;
    } else if (before != 256) {
      before = x.combining;
    }
    characters[n++] = x;
  }
  char bytes[4];
  for (size_t i = 0; i < n; ++i) out.append(bytes, encode(characters[i].c, bytes));
}

}  // namespace

std::string_view nfc(std::string_view text, std::string& out) {
  const char *p = text.data(), *const end = p + text.size();
  const char* unstable = find_unstable(p, end);
  if (unstable == end) return text;
  out.clear();
  std::vector<Character> characters;
  // Normalised piece by piece: a stable character and the unstable ones behind it are a piece whose surroundings do not matter.
  while (unstable != end) {
    const char* begin = unstable;
    if (begin > p) decode_before(begin);
    out.append(p, begin);
    characters.clear();
    for (p = begin; p < end;) {
      const char* next = p;
      const uint32_t c = decode(next);
      if (p > unstable && !(record(c).flags & kUnstable)) break;
      decompose(c, characters);
      p = next;
    }
    append_composed(characters, out);
    unstable = find_unstable(p, end);
  }
  out.append(p, end);
  return out;
}

bool is_final_sigma(std::string_view text, const char* begin, const char* end) {
  const char *const first = text.data(), *const last = first + text.size();
  uint8_t flags = kCaseIgnorable;
  while (begin > first && flags & kCaseIgnorable) flags = record(decode_before(begin)).flags;
  if (flags & kCaseIgnorable || !(flags & kCased)) return false;
  flags = kCaseIgnorable;
  while (end < last && flags & kCaseIgnorable) flags = record(decode(end)).flags;
  return flags & kCaseIgnorable || !(flags & kCased);
}

}  // namespace mirrorlda::unicode
