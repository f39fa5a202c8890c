#include "corpus/shard.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace mirrorlda {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian");

constexpr uint64_t kLargeBytes = sizeof(uint32_t) + sizeof(double);

template <class V>
V load(const uint8_t* from) {
  V value;
  std::memcpy(&value, from, sizeof(V));
  return value;
}

// Where the three parts of a block begin.
struct Parts {
  const uint8_t *words, *counts, *large;
  Parts(const uint8_t* shard, const Block& block, const BlockFormat& format)
      : words(shard + block.offset),
        counts(words + uint64_t(block.n_entries) * format.word_bytes),
        large(counts + uint64_t(block.n_entries) * block.count_bytes) {}
  uint32_t large_place(uint32_t i) const { return load<uint32_t>(large + i * kLargeBytes); }
  double large_count(uint32_t i) const { return load<double>(large + i * kLargeBytes + sizeof(uint32_t)); }
};

template <int W>
uint32_t word_at(const uint8_t* words, uint64_t entry) {
  const uint8_t* from = words + entry * W;
  if constexpr (W == 2) return load<uint16_t>(from);
  if constexpr (W == 4) return load<uint32_t>(from);
  return uint32_t(from[0]) | uint32_t(from[1]) << 8 | uint32_t(from[2]) << 16;
}

template <uint32_t C>
double count_at(const uint8_t* counts, uint64_t entry) {
  const uint8_t* from = counts + entry * C;
  if constexpr (C == 1) return *from;
  if constexpr (C == 2) return load<uint16_t>(from);
  if constexpr (C == 4) return load<float>(from);
  return load<double>(from);
}

constexpr uint32_t marker_of(uint32_t count_bytes) { return count_bytes == 1 ? 255 : count_bytes == 2 ? 65535 : 0; }

// The first large count at or after `entry`.
uint32_t large_from(const Parts& parts, uint32_t n_large, uint64_t entry) {
  uint32_t low = 0, high = n_large;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (parts.large_place(middle) < entry) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <int W, uint32_t C>
bool holds_documents(const Parts& parts, const Block& block, const BlockFormat& format, const uint32_t* sizes, int64_t n_docs) {
  constexpr uint32_t marker = marker_of(C);
  uint64_t entry = 0;
  uint32_t n_large = 0;
  for (int64_t d = 0; d < n_docs; ++d) {
    if (entry + sizes[d] > block.n_entries) return false;
    int64_t last = -1;
    bool sound = true;
    for (const uint64_t end = entry + sizes[d]; entry < end; ++entry) {
      const int64_t word = word_at<W>(parts.words, entry);
      sound &= word > last;
      last = word;
      double count = count_at<C>(parts.counts, entry);
      // Whole numbers below the marker are what they should be.
      if (marker && count != marker) continue;
      if (marker) {
        if (n_large == block.n_large || parts.large_place(n_large) != entry) return false;
        count = parts.large_count(n_large++);
      }
      sound &= count >= 0 && count <= format.largest_count;
    }
    // Words ascend, so that the last is the largest.
    if (!sound || last >= format.n_words) return false;
  }
  return entry == block.n_entries && n_large == block.n_large;
}

template <int W, uint32_t C, class T>
void read_entries(const Parts& parts, uint64_t first, uint32_t size, const T* table, int32_t* __restrict indices, T* __restrict counts) {
  for (uint32_t i = 0; i < size; ++i) indices[i] = int32_t(word_at<W>(parts.words, first + i));
  if (C == 1)
    for (uint32_t i = 0; i < size; ++i) counts[i] = table[parts.counts[first + i]];
  else
    for (uint32_t i = 0; i < size; ++i) counts[i] = T(count_at<C>(parts.counts, first + i));
}

// Calls work<W, C>() with the numbers of bytes of words and of counts.
template <class Work>
auto with_widths(int word_bytes, uint32_t count_bytes, const Work& work) {
  const auto with_counts = [&](auto W) {
    switch (count_bytes) {
      case 1: return work(W, std::integral_constant<uint32_t, 1>{});
      case 2: return work(W, std::integral_constant<uint32_t, 2>{});
      case 4: return work(W, std::integral_constant<uint32_t, 4>{});
      default: return work(W, std::integral_constant<uint32_t, 8>{});
    }
  };
  if (word_bytes == 2) return with_counts(std::integral_constant<int, 2>{});
  if (word_bytes == 3) return with_counts(std::integral_constant<int, 3>{});
  return with_counts(std::integral_constant<int, 4>{});
}

template <class T>
T log_of(T count) {
  return T(std::log1p(double(count)) * 1.4426950408889634);
}

}  // namespace

uint64_t block_size(const Block& block, const BlockFormat& format) {
  return uint64_t(block.n_entries) * (format.word_bytes + block.count_bytes) + block.n_large * kLargeBytes;
}

bool is_sound(const uint8_t* shard, const Block& block, const BlockFormat& format, const uint32_t* sizes, int64_t n_docs) {
  const Parts parts(shard, block, format);
  return with_widths(format.word_bytes, block.count_bytes, [&](auto W, auto C) {
    return holds_documents<W.value, C.value>(parts, block, format, sizes, n_docs);
  });
}

template <class T>
CountTable<T>::CountTable(bool logarithmic) : logarithmic(logarithmic) {
  for (int c = 0; c < kSmallCounts; ++c) values[c] = logarithmic ? T(std::log2(1.0 + c)) : T(c);
}

template <class T>
void read_document(const uint8_t* shard, const Block& block, const BlockFormat& format, uint64_t first, uint32_t size,
                   const CountTable<T>& table, int32_t* indices, T* counts) {
  const Parts parts(shard, block, format);
  with_widths(format.word_bytes, block.count_bytes, [&](auto W, auto C) {
    read_entries<W.value, C.value>(parts, first, size, table.values, indices, counts);
  });
  for (uint32_t i = block.n_large ? large_from(parts, block.n_large, first) : 0; i < block.n_large; ++i) {
    const uint64_t place = parts.large_place(i);
    if (place < first || place >= first + size) break;
    counts[place - first] = table.logarithmic && block.count_bytes == 1 ? log_of(T(parts.large_count(i))) : T(parts.large_count(i));
  }
  if (table.logarithmic && block.count_bytes != 1) logarithmic<T>(table, counts, size, counts);
}

template <class T>
void logarithmic(const CountTable<T>& table, const T* counts, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    const T count = counts[i];
    const int whole = count < T(kSmallCounts) ? int(count) : 0;
    out[i] = T(whole) == count ? table.values[whole] : log_of(count);
  }
}

template struct CountTable<float>;
template struct CountTable<double>;
template void read_document(const uint8_t*, const Block&, const BlockFormat&, uint64_t, uint32_t, const CountTable<float>&, int32_t*, float*);
template void read_document(const uint8_t*, const Block&, const BlockFormat&, uint64_t, uint32_t, const CountTable<double>&, int32_t*, double*);
template void logarithmic(const CountTable<float>&, const float*, int64_t, float*);
template void logarithmic(const CountTable<double>&, const double*, int64_t, double*);

}  // namespace mirrorlda
