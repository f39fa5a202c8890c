// Random numbers that depend on a seed and on what they are for, never on the thread that draws them.
#pragma once

#include <cstdint>

namespace mirrorlda {

// The finaliser of SplitMix64.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// xoshiro256++ of Blackman and Vigna.
class Generator {
 public:
  explicit Generator(uint64_t seed) {
    for (uint64_t& word : state_) word = seed = mix(seed);
  }

  // In [0, 1), in steps of 2^-53.
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  // In [0, limit), for limits far below 2^53.
  int64_t below(int64_t limit) { return int64_t(uniform() * double(limit)); }

 private:
  static uint64_t rotated(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  uint64_t next() {
    const uint64_t drawn = rotated(state_[0] + state_[3], 23) + state_[0], shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotated(state_[3], 45);
    return drawn;
  }

  uint64_t state_[4];
};

}  // namespace mirrorlda
