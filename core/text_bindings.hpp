#pragma once

#include <nanobind/nanobind.h>

namespace mirrorlda {

// Text to counts as Python sees it.
void bind_text(nanobind::module_& m);

}  // namespace mirrorlda
