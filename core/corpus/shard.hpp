// Blocks of documents as they lie on disk: words of 2, 3 or 4 bytes, then counts of 1 or 2 bytes, or of 4 or 8 as floats, then the counts that
// one or two bytes do not hold. Little-endian.
#pragma once

#include <cstdint>

namespace mirrorlda {

// One row of a shard's table of blocks.
struct Block {
  uint64_t offset;  // in the shard's bytes
  uint32_t n_entries, n_large;
  uint32_t count_bytes;  // 1 or 2: integers, the largest of which says that the count is among the large ones; 4 or 8: floats
  uint32_t checksum;
};
static_assert(sizeof(Block) == 24);

struct BlockFormat {
  int word_bytes;
  int64_t n_words;
  double largest_count;
};

// Bytes of a block.
uint64_t block_size(const Block& block, const BlockFormat& format);

// Whether `block`, which lies within the shard, is what its table says: documents' sizes add up, words ascend in every document and are below
// n_words, counts are finite and within [0, largest_count].
bool is_sound(const uint8_t* shard, const Block& block, const BlockFormat& format, const uint32_t* sizes, int64_t n_docs);

// Small whole counts as a model takes them: as they are, or as log2(1 + count).
constexpr int kSmallCounts = 256;
template <class T>
struct CountTable {
  explicit CountTable(bool logarithmic);
  bool logarithmic;
  T values[kSmallCounts];
};

// The entries of one document of a sound block, `first` being the place of its first entry, with counts as `table` takes them.
template <class T>
void read_document(const uint8_t* shard, const Block& block, const BlockFormat& format, uint64_t first, uint32_t size,
                   const CountTable<T>& table, int32_t* indices, T* counts);

// Equivalent to np.log2(1 + counts); the table is a logarithmic one.
template <class T>
void logarithmic(const CountTable<T>& table, const T* counts, int64_t n, T* out);

}  // namespace mirrorlda
