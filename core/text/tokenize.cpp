#include "text/tokenize.hpp"

namespace mirrorlda {

TextDefinition text_definition(bool lowercase, bool bigrams, const std::vector<std::string>& stop_words) {
  const TextDefinition plain{lowercase};
  TextDefinition definition{lowercase, bigrams};
  WordReader reader(plain);
  for (const std::string& text : stop_words) reader.read(text, [&](PaddedWord word) { definition.stop_words.insert(word); });
  return definition;
}

WordReader::WordReader(const TextDefinition& definition)
    : definition_(definition), lower_(definition.lowercase ? 0x2020202020202020u : 0) {}

size_t WordReader::read_character(std::string_view text, const char*& p, size_t n) {
  const char* const begin = p;
  uint32_t c = unicode::decode(p);
  if (!(unicode::record(c).flags & unicode::kWord)) return 0;
  if (n + kReserve > word_.size()) word_.resize(2 * word_.size());
  char* out = word_.data() + n;
  if (!definition_.lowercase) return size_t(unicode::encode(c, out));
  if (c == 0x130) return std::memcpy(out, "i\xCC\x87", 3), 3;
  if (c == 0x3A3) return size_t(unicode::encode(unicode::is_final_sigma(text, begin, p) ? 0x3C2 : 0x3C3, out));
  return size_t(unicode::encode(c + uint32_t(unicode::record(c).lower), out));
}

}  // namespace mirrorlda
