#include "likelihood/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parallel/random.hpp"
#include "parallel/thread_pool.hpp"

namespace mirrorlda {
namespace {

// Topics are added up in so many sums, that of lane j over topics j, j + kLanes, ...: the compiler has vectors for them.
constexpr int kLanes = 8;
// Sweeps before a state is taken for a draw from the posterior.
constexpr int kWarmUp = 100;

// A document as a sequence of words.
struct Sequence {
  int64_t stride;               // topics, padded to lanes with zeros
  std::vector<double> alpha;    // (stride,)
  double alpha_sum;
  std::vector<double> rows;     // of phi, (distinct words, stride), each divided by its largest entry: its sum with weights is not zero
  std::vector<int32_t> places;  // the row of each position
  double log_scale;             // ln of what the rows were divided by, over all positions; -inf where that is zero

  Sequence(const WholeCounts& counts, const GivenTopics& topics, int64_t document, Generator order)
      : stride((topics.n_topics + kLanes - 1) / kLanes * kLanes),
        alpha(size_t(stride)),
        alpha_sum(std::accumulate(topics.alpha, topics.alpha + topics.n_topics, 0.0)),
        log_scale(0) {
    std::copy_n(topics.alpha, topics.n_topics, alpha.begin());
    const int64_t begin = counts.indptr[document], end = counts.indptr[document + 1];
    rows.resize(size_t((end - begin) * stride));
    for (int64_t i = begin; i < end; ++i) {
      if (counts.counts[i] == 0) continue;
      const double* phi = topics.phi + int64_t(counts.indices[i]) * topics.n_topics;
      const double largest = *std::max_element(phi, phi + topics.n_topics);
      log_scale += counts.counts[i] * std::log(largest);
      for (int k = 0; k < topics.n_topics; ++k) rows[size_t((i - begin) * stride + k)] = largest > 0 ? phi[k] / largest : 0;
      places.insert(places.end(), size_t(counts.counts[i]), int32_t(i - begin));
    }
    for (int64_t n = length() - 1; n > 0; --n) std::swap(places[size_t(n)], places[size_t(order.below(n + 1))]);
  }

  int64_t length() const { return int64_t(places.size()); }
  const double* row(int64_t n) const { return rows.data() + places[size_t(n)] * stride; }
};

// Topics of a sequence's words, or of its first ones: what collapsed Gibbs sampling goes through.
class State {
 public:
  explicit State(const Sequence& words)
      : words_(&words), z_(words.places.size()), counts_(words.alpha.size()), weights_(words.alpha), sums_(words.alpha.size()) {}

  int topic(int64_t n) const { return z_[size_t(n)]; }
  // Of topic k for the next word, up to a factor: alpha and the words that have the topic.
  double weight(int k) const { return weights_[size_t(k)]; }

  void set(int64_t n, int k) {
    z_[size_t(n)] = k;
    add(k, 1);
  }
  void unset(int64_t n) { add(topic(n), -1); }

  // Equivalent to (row * weights).sum(); draw() is about the last row.
  double weigh(const double* row) {
    double sums[kLanes] = {};
    const double* const weights = weights_.data();
    double* const kept = sums_.data();
    for (size_t at = 0; at < sums_.size(); at += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) sums[j] += row[at + j] * weights[at + j];
      for (size_t j = 0; j < kLanes; ++j) kept[at + j] = sums[j];
    }
    double total = 0;
    for (size_t j = 0; j < kLanes; ++j) {
      before_[j] = total;
      total += kept[sums_.size() - kLanes + j];
    }
    return total;
  }

  // A topic with probability row * weights / total.
  int draw(double total, Generator& generator) const {
    const double target = generator.uniform() * total;
    size_t lane = 0;
    for (size_t j = 1; j < kLanes; ++j) lane += before_[j] <= target;
    // Where the differences of rounded sums lead beyond the lane, its last topic is meant.
    const double last = sums_[sums_.size() - kLanes + lane];
    double within = target - before_[lane];
    if (!(within < last)) within = std::nextafter(last, 0.0);
    size_t block = 0;
    for (size_t at = lane; at < sums_.size(); at += kLanes) block += sums_[at] <= within;
    return int(block * kLanes + lane);
  }

  void append(int64_t n, Generator& generator) { set(n, draw(weigh(words_->row(n)), generator)); }
  void resample(int64_t n, Generator& generator) {
    unset(n);
    append(n, generator);
  }
  void sweep(Generator& generator) {
    for (int64_t n = 0; n < words_->length(); ++n) resample(n, generator);
  }
  // The reversal of sweep().
  void sweep_back(Generator& generator) {
    for (int64_t n = words_->length() - 1; n >= 0; --n) resample(n, generator);
  }

 private:
  // From whole counts, for a sum of rounded ones would lose a small alpha.
  void add(int k, int by) { weights_[size_t(k)] = words_->alpha[size_t(k)] + (counts_[size_t(k)] += by); }

  const Sequence* words_;
  std::vector<int32_t> z_, counts_;
  std::vector<double> weights_, sums_;
  double before_[kLanes];
};

// ln of a product of probabilities, with few logarithms.
class LogProduct {
 public:
  void multiply(double factor) {
    const double product = product_ * factor;
    if (product > 1e-250 && product < 1e250) {
      product_ = product;
    } else {
      log_ += std::log(product_) + std::log(factor);
      product_ = 1;
    }
  }
  double log() const { return log_ + std::log(product_); }

 private:
  double log_ = 0, product_ = 1;
};

template <class Estimate>
void for_documents(const WholeCounts& counts, const GivenTopics& topics, uint64_t seed, double* out, int n_threads, const Estimate& estimate) {
  parallel_for(counts.n_docs, n_threads, [&](int64_t d, int) {
    const uint64_t key = mix(seed ^ mix(uint64_t(counts.documents[d])));
    const Sequence words(counts, topics, counts.documents[d], Generator(key));
    out[d] = words.log_scale == -std::numeric_limits<double>::infinity() ? words.log_scale : words.log_scale + estimate(words, key);
  });
}

// A draw from the posterior. The most probable state would be one where all words that several topics share have the same topic, which no
// sweep from a typical state leads to: of a document of two hundred words ln p(w) would be too low by ten or twenty.
State typical_state(const Sequence& words, Generator& generator) {
  State state(words);
  for (int64_t n = 0; n < words.length(); ++n) state.append(n, generator);
  for (int i = 0; i < kWarmUp; ++i) state.sweep(generator);
  return state;
}

// ln p(w, z).
double log_joint(const Sequence& words, const State& z) {
  State prefix(words);
  LogProduct p;
  for (int64_t n = 0; n < words.length(); ++n) {
    const int k = z.topic(n);
    p.multiply(words.row(n)[k] * prefix.weight(k) / (double(n) + words.alpha_sum));
    prefix.set(n, k);
  }
  return p.log();
}

// ln of the probability that a sweep leads from one state to the other.
double log_transition(const Sequence& words, State from, const State& to) {
  LogProduct p;
  for (int64_t n = 0; n < words.length(); ++n) {
    const int k = to.topic(n);
    from.unset(n);
    p.multiply(words.row(n)[k] * from.weight(k) / from.weigh(words.row(n)));
    from.set(n, k);
  }
  return p.log();
}

double log_mean_exp(const std::vector<double>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum / double(logs.size()));
}

}  // namespace

void left_to_right(const WholeCounts& counts, const GivenTopics& topics, int n_particles, uint64_t seed, double* out, int n_threads) {
  for_documents(counts, topics, seed, out, n_threads, [&](const Sequence& words, uint64_t key) {
    std::vector<double> p(words.places.size());
    for (int r = 0; r < n_particles; ++r) {
      Generator generator(mix(key + 1 + uint64_t(r)));
      State z(words);
      for (int64_t n = 0; n < words.length(); ++n) {
        for (int64_t earlier = 0; earlier < n; ++earlier) z.resample(earlier, generator);
        const double total = z.weigh(words.row(n));
        p[size_t(n)] += total / (double(n) + words.alpha_sum);
        z.set(n, z.draw(total, generator));
      }
    }
    LogProduct product;
    for (double sum : p) product.multiply(sum / n_particles);
    return product.log();
  });
}

void chib(const WholeCounts& counts, const GivenTopics& topics, int n_samples, uint64_t seed, double* out, int n_threads) {
  for_documents(counts, topics, seed, out, n_threads, [&](const Sequence& words, uint64_t key) {
    Generator generator(mix(key + 1));
    const State target = typical_state(words, generator);
    // z* stands behind one of the chain's places, drawn at random: from there the chain goes back to its first state and on to its last.
    const int64_t place = generator.below(n_samples);
    State middle = target;
    middle.sweep_back(generator);
    std::vector<double> logs{log_transition(words, middle, target)};
    logs.reserve(size_t(n_samples));
    State z = middle;
    for (int64_t s = place + 1; s < n_samples; ++s) {
      z.sweep(generator);
      logs.push_back(log_transition(words, z, target));
    }
    z = middle;
    for (int64_t s = 0; s < place; ++s) {
      z.sweep_back(generator);
      logs.push_back(log_transition(words, z, target));
    }
    return log_joint(words, target) - log_mean_exp(logs);
  });
}

}  // namespace mirrorlda
