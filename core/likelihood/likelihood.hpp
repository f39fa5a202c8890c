// How probable the words of documents are under given topics, with theta integrated out: theta ~ Dirichlet(alpha), the topic z_n of a word
// ~ theta, the word w_n ~ phi[:, z_n]. The sum over all z is estimated as in Wallach, Murray, Salakhutdinov and Mimno (2009).
#pragma once

#include <cstdint>

namespace mirrorlda {

struct GivenTopics {
  const double* phi;    // (n_words, n_topics)
  const double* alpha;  // (n_topics,)
  int n_topics;
};

// Documents of whole counts, one CSR matrix; those whose numbers are in `documents` are meant. Random numbers depend on a document's number.
struct WholeCounts {
  const int64_t* indptr;
  const int32_t *indices, *counts;
  const int64_t* documents;
  int64_t n_docs;
};

// ln p(w) of each document as a sequence of words, (n_docs,); -inf where no topic has a word.

// The left-to-right estimator: ln of the product over positions n of the mean over particles of p(w_n | z_<n), where a particle draws z_<n
// once again before each position.
void left_to_right(const WholeCounts& counts, const GivenTopics& topics, int n_particles, uint64_t seed, double* out, int n_threads);

// The Chib-style estimator of Murray and Salakhutdinov (2009): p(w, z*) over the mean probability of a Gibbs sweep from z^(s) to z*, a state
// of high probability, along a chain of n_samples states that passes by z*.
void chib(const WholeCounts& counts, const GivenTopics& topics, int n_samples, uint64_t seed, double* out, int n_threads);

}  // namespace mirrorlda
