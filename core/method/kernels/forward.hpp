// MAP inference of one document by unrolled mirror descent (section 3, Algorithm 1), leaving the trace that `reverse` consumes.
//
// With theta' = theta + change, r = P theta and t = P change / r, both acceptance rules compare Bregman divergences,
//   D_f(theta', theta) = x . (t - ln(1 + t)) + (alpha - 1) . (change / theta - ln(theta' / theta)) <= D(theta', theta) / T,
// and every term is of second order in the change: nothing cancels, in float32 either.
#pragma once

#include "method/kernels/kernels.hpp"
#include "method/kernels/phi_block.hpp"
#include "method/kernels/scratch.hpp"

namespace mirrorlda::MIRRORLDA_ISA {

// Where t falls below it, r + r_change loses digits.
constexpr double kDrop = -0.75;

// The state of one document between layers. Arrays over topics are padded with zeros, arrays over words with x = 0.
template <class T>
struct State {
  T *block, *counts, *r, *sums;
  T *theta, *theta_inverse, *log_theta, *g;
  double objective;
};

// A candidate for the next layer.
template <class T>
struct Trial {
  T *weights, *raw, *theta, *log_theta, *change, *r_change;
  double step, distance;
  double overshoot;  // D_f, with the words' lower bound for their part, over what acceptance allows
  double decrease;   // f(theta) - f(theta'), exact where the objective is wanted
  double gain;       // an upper bound of it, from the words' lower bound of D_f: the same number whether the objective is wanted or not
  bool drops;        // some t is below kDrop
  bool tells;        // of an accepted step: D / T is above the slack, so that a larger one may be tried
};

template <class T>
MIRRORLDA_INLINE T log_of(T x) {
  return first<T>(log<T>(broadcast<T>(x)));
}

// g = -grad f = P^T (x / r) + (alpha - 1) / theta, padded with its own maximum, which is returned.
template <class T>
inline T ascent_direction(const Inference<T>& model, int64_t n_padded, const T* r_inverse, State<T>& state) {
  constexpr int W = kWidth<T>;
  const int K = model.n_topics;
  for_panels<T>(state.block, 0, n_padded, K, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
    Vec<T> w[NV];
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) w[j] = load<T>(state.counts + word + j * W) * load<T>(r_inverse + word + j * W);
    transposed_panel<T, NV>(panel, K, w, word == 0, state.sums);
  });
  collect<T>(state.sums, K, state.g);
  T* const g = state.g;
  Vec<T> top = broadcast<T>(g[0] + model.alpha_minus_1[0] * state.theta_inverse[0]);
  int k = 0;
  for (; k + W <= K; k += W) {
    const Vec<T> gk = load<T>(g + k) + load<T>(model.alpha_minus_1 + k) * load<T>(state.theta_inverse + k);
    store<T>(g + k, gk);
    top = max<T>(top, gk);
  }
  T g_max = largest<T>(top);
  for (; k < K; ++k) {
    g[k] += model.alpha_minus_1[k] * state.theta_inverse[k];
    g_max = g[k] > g_max ? g[k] : g_max;
  }
  for (; k < round_up<T>(K); ++k) g[k] = g_max;
  return g_max;
}

// The entropic mirror step: raw = weights / C with weights = theta exp(T (g - g_max)), then the floor.
template <class T>
inline void mirror_step(const Inference<T>& model, const State<T>& state, T g_max, Trial<T>& trial) {
  constexpr int W = kWidth<T>;
  Vec<T> total{};
  for (int k = 0; k < model.n_topics; k += W) total += load<T>(trial.weights + k);
  const T normaliser = sum<T>(total), inverse = T(1) / normaliser, log_normaliser = log_of<T>(normaliser);
  const State<T> now = state;
  const Trial<T> next = trial;
  const T step = T(trial.step), *floor = model.floor;
  Vec<T> distance{};
  for (int k = 0, K = model.n_topics; k < K; k += W) {
    const Vec<T> raw = load<T>(next.weights + k) * inverse;
    const Vec<T> theta = max<T>(raw, load<T>(floor + k));
    const Vec<T> change = theta - load<T>(now.theta + k);
    const Vec<T> exponent = (load<T>(now.g + k) - g_max) * step - log_normaliser;
    store<T>(next.raw + k, raw);
    store<T>(next.theta + k, theta);
    store<T>(next.change + k, change);
    store<T>(next.log_theta + k, max<T>(load<T>(now.log_theta + k) + exponent, broadcast<T>(T(kLogFloor))));
    distance += abs<T>(change);
  }
  trial.distance = double(sum<T>(distance));
}

// What one cheap pass over the words tells of a trial: the range of t (0 included), x . t, and x . t^2 / (2 + 4 t / 3), a lower bound of
// x . (t - ln(1 + t)).
template <class T>
struct Survey {
  double lowest, highest, linear, gap;
};

template <class T>
MIRRORLDA_INLINE Survey<T> survey(const T* counts, const T* r_change, const T* r_inverse, int64_t n_padded) {
  constexpr int W = kWidth<T>;
  Vec<T> lowest{}, highest{}, linear{}, gap{};
  for (int64_t i = 0; i < n_padded; i += W) {
    const Vec<T> t = load<T>(r_change + i) * load<T>(r_inverse + i);
    const Vec<T> weighted = load<T>(counts + i) * t;
    lowest = min<T>(lowest, t);
    highest = max<T>(highest, t);
    linear += weighted;
    gap += weighted * (t / (t * T(4.0 / 3) + T(2)));
  }
  return {-double(largest<T>(-lowest)), double(largest<T>(highest)), double(sum<T>(linear)), double(sum<T>(gap))};
}

// x . (t - ln(1 + t)), with the series where all t are small.
template <class T>
inline double word_gap(const T* counts, const T* r_change, const T* r_inverse, int64_t n_padded, bool is_near) {
  constexpr int W = kWidth<T>;
  Vec<T> gap{};
  if (is_near) {
    for (int64_t i = 0; i < n_padded; i += W)
      gap += load<T>(counts + i) * log1p_gap_near<T>(load<T>(r_change + i) * load<T>(r_inverse + i));
  } else {
    for (int64_t i = 0; i < n_padded; i += W)
      gap += load<T>(counts + i) * log1p_gap<T>(load<T>(r_change + i) * load<T>(r_inverse + i));
  }
  return double(sum<T>(gap));
}

// KL(theta', theta) = theta' . (t - ln(1 + t)) with t = -change / theta'. Far from zero, ln(1 + t) is the difference of the logarithms:
// where theta leaves the floor, 1 + t is below the resolution of float32.
template <class T>
inline double kl_distance(const Inference<T>& model, const State<T>& state, const Trial<T>& trial) {
  constexpr int W = kWidth<T>;
  Vec<T> total{};
  for (int k = 0; k < model.n_topics; k += W) {
    const Vec<T> theta = load<T>(trial.theta + k);
    const Vec<T> t = -load<T>(trial.change + k) / max<T>(theta, broadcast<T>(T(kFloor)));
    const Vec<T> far = t + load<T>(trial.log_theta + k) - load<T>(state.log_theta + k);
    total += theta * (abs<T>(t) < T(kNear) ? log1p_gap_near<T>(t) : far);
  }
  return double(sum<T>(total));
}

// Whether the trial is accepted; if it is, or if there is no search, fills `decrease` and `drops`, if it is not, `overshoot`.
//
// 1 <= (t - ln(1 + t)) / (t^2 / (2 + 4 t / 3)) <= 4 / 3 for t >= kDrop: most trials are decided by these bounds, and logarithms are taken
// of the others, or where the objective itself is wanted.
template <class T>
inline bool accepted(const Inference<T>& model, int64_t n_padded, const T* r_inverse, const State<T>& state, Trial<T>& trial) {
  constexpr int W = kWidth<T>;
  const Survey<T> words = survey<T>(state.counts, trial.r_change, r_inverse, n_padded);
  Vec<T> log_change{}, gap{};
  for (int k = 0; k < model.n_topics; k += W) {
    const Vec<T> weight = load<T>(model.alpha_minus_1 + k);
    const Vec<T> logs = load<T>(trial.log_theta + k) - load<T>(state.log_theta + k);
    log_change += weight * logs;
    gap += weight * (load<T>(trial.change + k) * load<T>(state.theta_inverse + k) - logs);
  }
  const double prior_gap = double(sum<T>(gap)), prior_decrease = double(sum<T>(log_change));
  const auto exact_gap = [&] {
    const bool is_near = words.lowest > -kNear && kNear > words.highest;
    return word_gap<T>(state.counts, trial.r_change, r_inverse, n_padded, is_near);
  };
  double gap_of_words = words.gap;
  trial.drops = !(words.lowest > kDrop);
  if (model.rule == StepRule::given) {
    if (model.wants_objective) gap_of_words = exact_gap();
  } else {
    const double distance = model.rule == StepRule::l1 ? 0.5 * trial.distance * trial.distance : kl_distance<T>(model, state, trial);
    const double slack = kSlack * (state.objective < 0 ? -state.objective : state.objective);
    const double allowed = distance / trial.step + slack;
    trial.tells = distance / trial.step > slack;
    trial.overshoot = (words.gap + prior_gap) / allowed;
    if (!(words.gap <= allowed - prior_gap)) return false;
    const bool is_clear = !trial.drops && words.gap * (4.0 / 3) <= allowed - prior_gap;
    if (model.wants_objective || !is_clear) {
      gap_of_words = exact_gap();
      if (!(gap_of_words <= allowed - prior_gap)) return false;
    }
  }
  trial.decrease = words.linear - gap_of_words + prior_decrease;
  trial.gain = words.linear - words.gap + prior_decrease;
  return true;
}

// The trial of trial.step: its theta, and r_change = P change.
template <class T>
inline void try_step(const Inference<T>& model, int64_t n_padded, const State<T>& state, T g_max, Trial<T>& trial) {
  constexpr int W = kWidth<T>;
  const T *g = state.g, *theta = state.theta, step = T(trial.step);
  T* const weights = trial.weights;
  for (int k = 0, K = model.n_topics; k < K; k += W) store<T>(weights + k, load<T>(theta + k) * exp<T>((load<T>(g + k) - g_max) * step));
  mirror_step<T>(model, state, g_max, trial);
  for_panels<T>(state.block, 0, n_padded, model.n_topics, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
    Vec<T> r[NV];
    product_panel<T, NV>(panel, model.n_topics, trial.change, r);
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) store<T>(trial.r_change + word + j * W, r[j]);
  });
}

// Looks for a step that is accepted among trial.step eta^i with i < kMaxSteps; false when there is none. After a rejected step it passes
// over those that would fail as well if D_f fell with T^2 and D / T with T. `n_trials` counts the steps tried, and trial.step ends as the
// last of them.
template <class T>
inline bool search(const Inference<T>& model, int64_t n_padded, const T* r_inverse, const State<T>& state, T g_max, Trial<T>& trial,
                   int32_t& n_trials) {
  int n_steps = 1;
  for (n_trials = 1;; ++n_trials) {
    try_step<T>(model, n_padded, state, g_max, trial);
    if (accepted<T>(model, n_padded, r_inverse, state, trial)) return true;
    if (n_steps == kMaxSteps) return false;
    double overshoot = trial.overshoot;
    do {
      trial.step *= kEta;
      overshoot *= kEta;
      ++n_steps;
    } while (overshoot > 1 && n_steps < kMaxSteps);
  }
}

// r = P theta and 1 / r; returns -x . ln r.
template <class T>
inline double set_r(const Inference<T>& model, int64_t n_padded, T* r_inverse, State<T>& state) {
  constexpr int W = kWidth<T>;
  Vec<T> log_likelihood{};
  for_panels<T>(state.block, 0, n_padded, model.n_topics, [&]<int NV>(const T* panel, int64_t word) MIRRORLDA_INLINE_LAMBDA {
    Vec<T> r[NV];
    product_panel<T, NV>(panel, model.n_topics, state.theta, r);
    MIRRORLDA_UNROLL
    for (int j = 0; j < NV; ++j) {
      store<T>(state.r + word + j * W, r[j]);
      store<T>(r_inverse + word + j * W, T(1) / r[j]);
      log_likelihood += load<T>(state.counts + word + j * W) * log<T>(r[j]);
    }
  });
  return -double(sum<T>(log_likelihood));
}

template <class T>
inline void start(const Inference<T>& model, const Document<T>& document, int64_t n_padded, const DocumentTrace<T>& trace,
                  State<T>& state) {
  const int K = model.n_topics;
  gather<T>(state.block, model, document.indices, document.n);
  copy_counts<T>(state.counts, document.counts, document.n, n_padded);
  clear<T>(state.sums, K);
  const T log_uniform = -log_of<T>(T(K));
  double prior = 0;
  for (int k = 0; k < round_up<T>(K); ++k) {
    state.theta[k] = k < K ? T(1) / T(K) : T(0);
    state.theta_inverse[k] = k < K ? T(K) : T(0);
    state.log_theta[k] = log_uniform;
    trace.raw[k] = state.theta[k];
    prior += double(model.alpha_minus_1[k]) * double(log_uniform);
  }
  state.objective = set_r<T>(model, n_padded, trace.r_inverse, state) - prior;
}

template <class T>
inline void advance(const Inference<T>& model, int64_t n_padded, const Trial<T>& trial, T* raw, T* r_inverse, State<T>& state) {
  constexpr int W = kWidth<T>;
  for (int k = 0; k < model.n_topics; k += W) {
    const Vec<T> theta = load<T>(trial.theta + k);
    store<T>(raw + k, load<T>(trial.raw + k));
    store<T>(state.theta + k, theta);
    store<T>(state.theta_inverse + k, T(1) / max<T>(theta, broadcast<T>(T(kFloor))));
    store<T>(state.log_theta + k, load<T>(trial.log_theta + k));
  }
  if (trial.drops) {
    double log_prior = 0;
    for (int k = 0; k < model.n_topics; ++k) log_prior += double(model.alpha_minus_1[k]) * double(state.log_theta[k]);
    state.objective = set_r<T>(model, n_padded, r_inverse, state) - log_prior;
    return;
  }
  for (int64_t i = 0; i < n_padded; i += W) {
    const Vec<T> r = load<T>(state.r + i) + load<T>(trial.r_change + i);
    store<T>(state.r + i, r);
    store<T>(r_inverse + i, T(1) / r);
  }
  state.objective -= trial.decrease;
}

// Theta stays as it is from `layer` on. Of these layers' 1 / r only the last one is read: `reverse` passes over steps of zero.
template <class T>
inline void stay(const Inference<T>& model, const Document<T>& document, int64_t n_padded, int layer, const DocumentTrace<T>& trace,
                 double objective) {
  const int64_t padded_topics = round_up<T>(model.n_topics);
  if (layer < model.n_layers) memcpy(trace.r_inverse + model.n_layers * n_padded, trace.r_inverse + layer * n_padded, sizeof(T) * n_padded);
  for (; layer < model.n_layers; ++layer) {
    prefetch_next<T>(model, document, nullptr, layer);
    memcpy(trace.raw + (layer + 1) * padded_topics, trace.raw + layer * padded_topics, sizeof(T) * padded_topics);
    trace.steps[layer] = 0;
    trace.n_trials[layer] = 0;
    trace.objective[layer + 1] = objective;
  }
}

template <class T>
struct ForwardMemory {
  State<T> state;
  Trial<T> trial;

  ForwardMemory(Scratch& scratch, int64_t n, int n_topics) {
    const int64_t n_padded = round_up<T>(n), padded_topics = round_up<T>(n_topics);
    state.counts = scratch.take<T>(n_padded);
    state.r = scratch.take<T>(n_padded);
    state.theta = scratch.take<T>(padded_topics);
    state.theta_inverse = scratch.take<T>(padded_topics);
    state.log_theta = scratch.take<T>(padded_topics);
    state.g = scratch.take<T>(padded_topics);
    state.sums = scratch.take<T>(padded_topics * kWidth<T>);
    trial.weights = scratch.take<T>(padded_topics);
    trial.raw = scratch.take<T>(padded_topics);
    trial.theta = scratch.take<T>(padded_topics);
    trial.log_theta = scratch.take<T>(padded_topics);
    trial.change = scratch.take<T>(padded_topics);
    trial.r_change = scratch.take<T>(n_padded);
    state.block = scratch.take<T>(n_padded * n_topics);
  }
};

template <class T>
inline void forward(const Inference<T>& model, const Document<T>& document, const DocumentTrace<T>& trace, void* memory) {
  const int64_t n_padded = round_up<T>(document.n), padded_topics = round_up<T>(model.n_topics);
  Scratch scratch{memory};
  ForwardMemory<T> pieces(scratch, document.n, model.n_topics);
  State<T>& state = pieces.state;
  Trial<T>& trial = pieces.trial;

  start<T>(model, document, n_padded, trace, state);
  double total = 0;
  for (int64_t i = 0; i < document.n; ++i) total += double(document.counts[i]);
  for (int k = 0; k < model.n_topics; ++k) total += double(model.alpha_minus_1[k] < 0 ? -model.alpha_minus_1[k] : model.alpha_minus_1[k]);
  trial.step = total > 0 ? 1 / total : 1;
  trial.tells = true;
  trace.objective[0] = state.objective;
  // One layer alone says little: where its doubled step was rejected it gains less than those around it.
  const double tol = model.rule == StepRule::given ? 0 : model.tol;
  double gained = 0, gain_before = 0;
  for (int layer = 0; layer < model.n_layers; ++layer) {
    const T* r_inverse = trace.r_inverse + layer * n_padded;
    T* raw = trace.raw + (layer + 1) * padded_topics;
    prefetch_next<T>(model, document, nullptr, layer);
    const T g_max = ascent_direction<T>(model, n_padded, r_inverse, state);
    bool moves;
    if (model.rule == StepRule::given) {
      // A step of zero is the identity.
      trace.n_trials[layer] = 1;
      trial.step = document.steps[layer];
      moves = trial.step != 0;
      if (moves) {
        try_step<T>(model, n_padded, state, g_max, trial);
        accepted<T>(model, n_padded, r_inverse, state, trial);
      }
    } else {
      // Where the last change was so small that any step would have passed, nothing speaks for a larger one. Doubled layer by layer, it
      // would leave theta where it is, and take its derivative beyond all bounds.
      if (trial.tells) trial.step /= kEta;
      moves = search<T>(model, n_padded, r_inverse, state, g_max, trial, trace.n_trials[layer]);
    }
    if (moves) {
      trace.steps[layer] = trial.step;
      advance<T>(model, n_padded, trial, raw, trace.r_inverse + (layer + 1) * n_padded, state);
    } else {
      trace.steps[layer] = 0;
      trial.tells = true;
      memcpy(raw, raw - padded_topics, sizeof(T) * padded_topics);
      memcpy(trace.r_inverse + (layer + 1) * n_padded, r_inverse, sizeof(T) * n_padded);
    }
    trace.objective[layer + 1] = state.objective;
    const double gain = moves ? trial.gain : 0;
    gained += gain;
    if (tol > 0 && !(gain_before + gain > tol * gained)) return stay<T>(model, document, n_padded, layer + 1, trace, state.objective);
    gain_before = gain;
  }
}

}  // namespace mirrorlda::MIRRORLDA_ISA
