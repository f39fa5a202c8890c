// Chooses the instruction set once, when it is first needed.
#pragma once

#include <string>
#include <vector>

#include "method/kernels/kernels.hpp"

namespace mirrorlda {

// Those that this build holds and this machine runs, the best first.
std::vector<std::string> instruction_sets();

// The one in use: the best, or what the environment variable MIRRORLDA_ISA names. Throws std::runtime_error for a name that is unknown or
// cannot run here.
const std::string& instruction_set();

template <class T>
const Kernels<T>& kernels();

}  // namespace mirrorlda
