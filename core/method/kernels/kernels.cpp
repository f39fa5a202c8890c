// The kernels of one instruction set: compiled once for each, with MIRRORLDA_ISA as its name.
#include "method/kernels/kernels.hpp"

#include <algorithm>

#include "method/kernels/decode.hpp"
#include "method/kernels/forward.hpp"
#include "method/kernels/phi_update.hpp"
#include "method/kernels/reverse.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

template <class T>
int64_t scratch_bytes(int64_t n, int n_topics, int n_layers) {
  Scratch forward_part{nullptr}, reverse_part{nullptr}, decode_part{nullptr};
  ForwardMemory<T>(forward_part, n, n_topics);
  ReverseMemory<T>(reverse_part, n, n_topics, n_layers);
  DecodeMemory<T>(decode_part, n, n_topics);
  return std::max({forward_part.used, reverse_part.used, decode_part.used});
}

template <class T>
constexpr Kernels<T> table{kWidth<T>,     scratch_bytes<T>, forward<T>,    reverse<T>,   decode<T>, dot<T>,
                           add_scaled<T>, mirror_row<T>,    settle_row<T>, log_ratio<T>, add_squares<T>};

extern const Kernels<float>* const kernels_float;
extern const Kernels<double>* const kernels_double;
const Kernels<float>* const kernels_float = &table<float>;
const Kernels<double>* const kernels_double = &table<double>;

}  // namespace mirrorlda::MIRRORLDA_ISA
