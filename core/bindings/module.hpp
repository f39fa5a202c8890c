#pragma once

#include <nanobind/nanobind.h>

// Parts of the core as Python sees them.
namespace mirrorlda {

// Steps of learning: gradients of the response, updates of topics and weights, changes that shards exchange.
void bind_learning(nanobind::module_& m);

// Shards of a corpus.
void bind_shards(nanobind::module_& m);

// Text to counts.
void bind_text(nanobind::module_& m);

}  // namespace mirrorlda
