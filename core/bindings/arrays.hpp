#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>

#include "method/engine.hpp"

// Arrays of Python's, and what memory safety needs to know of them.
namespace mirrorlda {

namespace nb = nanobind;

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Strided = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T>;

template <class T>
Numpy<T> new_array(std::initializer_list<size_t> shape) {
  size_t n = 1;
  for (size_t extent : shape) n *= extent;
  T* data = new T[n];
  return Numpy<T>(data, shape, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// NumPy gives an array without elements any strides.
template <class T>
bool has_contiguous_rows(const Strided<const T, 2>& array) {
  return array.size() == 0 || array.shape(1) == 1 || array.stride(1) == 1;
}

template <class T>
bool has_shape_of(const std::optional<Array<T, 2>>& array, const Array<T, 2>& like) {
  return !array || (array->shape(0) == like.shape(0) && array->shape(1) == like.shape(1));
}

// All of `values` in [0, limit).
template <class I>
void check_range(const I* values, size_t n, int64_t limit, const char* what) {
  bool holds = true;
  for (size_t i = 0; i < n; ++i) holds &= values[i] >= 0 && values[i] < limit;
  require(holds, what);
}

inline void check_documents(const Array<const int64_t, 1>& indptr, const Array<const int32_t, 1>& indices,
                            const Array<const int64_t, 1>& documents) {
  check_range(documents.data(), documents.shape(0), int64_t(indptr.shape(0)) - 1, "a document number is out of range");
  bool ascending = true;
  for (size_t d = 0; d < documents.shape(0); ++d) {
    const int64_t begin = indptr(documents(d)), end = indptr(documents(d) + 1);
    ascending &= begin >= 0 && begin <= end && size_t(end) <= indices.shape(0);
  }
  require(ascending, "indptr is not ascending");
}

inline void check_indptr(const Array<const int64_t, 1>& indptr, const Array<const int32_t, 1>& indices) {
  bool ascending = indptr.shape(0) > 0 && indptr(0) == 0 && size_t(indptr(indptr.shape(0) - 1)) == indices.shape(0);
  for (size_t d = 0; d + 1 < indptr.shape(0); ++d) ascending &= indptr(d) <= indptr(d + 1);
  require(ascending, "indptr is not ascending");
}

// Documents of a block: as many as asked for, or with 0 as many as a batch of n_docs has.
inline int64_t blocks_of(int64_t wanted, int64_t n_docs) {
  require(wanted >= 0, "block_docs is negative");
  return wanted ? wanted : block_docs(n_docs);
}

}  // namespace mirrorlda
