// What rows of Phi have become elsewhere: made, and merged with others. Values travel as the upper halves of their float32.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace mirrorlda {

// The upper half of a float32, rounded to the nearest, or to the even one of two: eight bits of precision, and all of the range.
inline uint16_t upper_half(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  return uint16_t((all + 0x7FFF + ((all >> 16) & 1)) >> 16);
}

inline float from_upper_half(uint16_t half) { return std::bit_cast<float>(uint32_t(half) << 16); }

// Equivalent to upper halves of weight * np.log(np.maximum(z[rows] + shift, floor) / np.maximum(before + shift, floor))
template <class T>
void log_changes(const T* z, const int32_t* rows, int64_t n_rows, int n_topics, const T* before, const T* shift, const T* floor, T weight,
                 uint16_t* halves);

// Some rows of a matrix, in ascending order.
template <class V>
struct SparseRows {
  const int32_t* rows;
  int64_t n_rows;
  const V* values;  // (n_rows, width)
};

// The sum of two, of which `rows` has the rows of either. Halves are added as the float32 that they stand for.
template <class V>
void add_rows(const SparseRows<V>& left, const SparseRows<V>& right, int64_t width, const std::vector<int32_t>& rows, V* values);

}  // namespace mirrorlda
