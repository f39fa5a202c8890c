#include "method/dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

#define MIRRORLDA_DECLARE(isa)                       \
  namespace mirrorlda::isa {                         \
  extern const Kernels<float>* const kernels_float;  \
  extern const Kernels<double>* const kernels_double; \
  }

MIRRORLDA_DECLARE(scalar)
#if defined(MIRRORLDA_HAS_VECTORS)
MIRRORLDA_DECLARE(baseline)
#endif
#if defined(MIRRORLDA_HAS_X86)
MIRRORLDA_DECLARE(avx2)
MIRRORLDA_DECLARE(avx512)
#endif

namespace mirrorlda {
namespace {

struct InstructionSet {
  const char* name;
  bool runs_here;
  const Kernels<float>* with_float;
  const Kernels<double>* with_double;
};

std::vector<InstructionSet> all() {
  return {
#if defined(MIRRORLDA_HAS_X86)
      {"avx512", __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512bw"),
       avx512::kernels_float, avx512::kernels_double},
      {"avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), avx2::kernels_float, avx2::kernels_double},
#endif
#if defined(MIRRORLDA_HAS_VECTORS)
      {"baseline", true, baseline::kernels_float, baseline::kernels_double},
#endif
      {"scalar", true, scalar::kernels_float, scalar::kernels_double},
  };
}

InstructionSet choose() {
  const char* wanted = std::getenv("MIRRORLDA_ISA");
  std::string known;
  for (const InstructionSet& set : all()) {
    if (!set.runs_here) continue;
    if (!wanted || !*wanted || set.name == std::string(wanted)) return set;
    known += known.empty() ? set.name : std::string(", ") + set.name;
  }
  throw std::runtime_error("MIRRORLDA_ISA is '" + std::string(wanted) + "'; this machine and this build run: " + known);
}

const InstructionSet& chosen() {
  static const InstructionSet set = choose();
  return set;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : all())
    if (set.runs_here) names.push_back(set.name);
  return names;
}

const std::string& instruction_set() {
  static const std::string name = chosen().name;
  return name;
}

template <>
const Kernels<float>& kernels<float>() {
  return *chosen().with_float;
}

template <>
const Kernels<double>& kernels<double>() {
  return *chosen().with_double;
}

}  // namespace mirrorlda
