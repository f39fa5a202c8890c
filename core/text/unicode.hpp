// Unicode as the table beside it has it: categories, normalisation form C, lower case. Text is UTF-8 in which lone surrogates may stand, as
// three bytes each; it must be well-formed otherwise.
#pragma once

#include <string>
#include <string_view>

#include "text/unicode_table.hpp"

namespace mirrorlda::unicode {

inline const Record& record(uint32_t c) { return kRecords[kRecordOf[kBlocks[c >> 7] * 128 + (c & 127)]]; }

inline bool is_continuation(char byte) { return (uint8_t(byte) & 0xC0) == 0x80; }

// The character at p, which moves behind it.
inline uint32_t decode(const char*& p) {
  const uint8_t lead = uint8_t(*p++);
  if (lead < 0x80) return lead;
  const auto next = [&] { return uint32_t(uint8_t(*p++) & 0x3F); };
  uint32_t c;
  if (lead < 0xE0) return c = uint32_t(lead & 0x1F) << 6, c | next();
  if (lead < 0xF0) return c = uint32_t(lead & 0x0F) << 12, c |= next() << 6, c | next();
  return c = uint32_t(lead & 0x07) << 18, c |= next() << 12, c |= next() << 6, c | next();
}

// The character that ends before p, which moves to its beginning.
inline uint32_t decode_before(const char*& p) {
  do --p;
  while (is_continuation(*p));
  const char* begin = p;
  return decode(begin);
}

// Writes c at `out`, at most four bytes, and returns how many.
inline int encode(uint32_t c, char* out) {
  if (c < 0x80) return out[0] = char(c), 1;
  if (c < 0x800) return out[0] = char(0xC0 | c >> 6), out[1] = char(0x80 | (c & 0x3F)), 2;
  if (c < 0x10000) return out[0] = char(0xE0 | c >> 12), out[1] = char(0x80 | (c >> 6 & 0x3F)), out[2] = char(0x80 | (c & 0x3F)), 3;
  out[0] = char(0xF0 | c >> 18), out[1] = char(0x80 | (c >> 12 & 0x3F)), out[2] = char(0x80 | (c >> 6 & 0x3F)), out[3] = char(0x80 | (c & 0x3F));
  return 4;
}

// `text` in normalisation form C: itself where it is so already, else a view of `out`.
std::string_view nfc(std::string_view text, std::string& out);

// Whether the capital sigma at [begin, end) of `text` ends a word and so becomes a final one: a cased letter before it, none after it,
// characters that casing ignores left aside.
bool is_final_sigma(std::string_view text, const char* begin, const char* end);

}  // namespace mirrorlda::unicode
