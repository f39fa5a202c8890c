// One thread's working memory, handed out in aligned pieces; with no memory behind it, it only counts.
#pragma once

#include <cstdint>

namespace mirrorlda::MIRRORLDA_ISA {

struct Scratch {
  static constexpr int64_t kAlignment = 64;
  char* const base;
  int64_t used = 0;
  explicit Scratch(void* memory) : base(static_cast<char*>(memory)) {}

  template <class T>
  T* take(int64_t n) {
    T* piece = base ? reinterpret_cast<T*>(base + used) : nullptr;
    used += (n * int64_t(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }
};

}  // namespace mirrorlda::MIRRORLDA_ISA
