// What the kernels of every instruction set take and give: plain pointers and small records, shared with the engine.
#pragma once

#include <cstdint>

namespace mirrorlda {

// theta and Phi stay at or above it; a component that was raised to it has derivative zero.
constexpr double kFloor = 1e-12;
constexpr double kLogFloor = -27.631021115928547;
// Algorithm 1's eta, the bound on the steps of one layer, and the relative slack of acceptance.
constexpr double kEta = 0.5;
constexpr int kMaxSteps = 40;
constexpr double kSlack = 1e-9;
// The exponent of one learning step is clipped to +-kClip.
constexpr double kClip = 1.0;

enum class StepRule : int { l1, kl, given };

// The model as inference sees it. Arrays over topics are padded with zeros to whole vectors.
template <class T>
struct Inference {
  const T* z;  // (n_words, n_topics), not padded: Phi is max(scale z + shift, kFloor)
  int64_t n_words;
  const T *scale, *shift;
  const T* alpha_minus_1;
  const T* floor;  // kFloor
  int n_topics;
  int n_layers;
  StepRule rule;
  double tol;            // a line search ends once the last two layers gained at most tol times what all did; 0: never
  bool wants_objective;  // exact f(theta) of every layer; otherwise only near enough for the slack of acceptance
};

template <class T>
struct Document {
  const int32_t* indices;
  const T* counts;
  int64_t n;
  const double* steps;  // of all layers, for StepRule::given
  // Words of the document that comes next: their rows of Phi are asked for layer by layer, while there is something to compute.
  const int32_t* next_indices;
  int64_t n_next;
};

// What a document leaves for the reverse pass. padded_topics and padded_words are multiples of the vector width.
template <class T>
struct DocumentTrace {
  T* raw;             // (n_layers + 1, padded_topics): theta before the floor
  T* r_inverse;       // (n_layers + 1, padded_words): 1 / (Phi theta)
  double* steps;      // (n_layers,), 0 where the layer is the identity: no step is accepted, or the layers before it ended (tol)
  double* objective;  // (n_layers + 1,)
  int32_t* n_trials;  // (n_layers,)
};

// What comes down to a document and where its gradient goes. Pointers are NULL where a part is not wanted.
template <class T>
struct DocumentGradient {
  const T* grad_theta;  // (n_topics,) d loss / d theta_L; NULL: nothing passes through the layers
  T word_weight;        // weight of the explicit term of -ln p(x | theta_L, Phi)
  T** rows;             // (n,) padded rows, each is added to
  T** next_rows;        // (n_next,) those of the next document
  T* grad_counts;       // (n,)
};

// Where z stands to Phi and to its running average, one vector over topics each; see method/learning_step.hpp.
template <class T>
struct FrameVectors {
  const T *M, *MB, *M_inverse, *B, *A, *E;
};

// The kernels of one instruction set for one scalar type.
template <class T>
struct Kernels {
  int width;
  int64_t (*scratch_bytes)(int64_t n, int n_topics, int n_layers);
  void (*forward)(const Inference<T>&, const Document<T>&, const DocumentTrace<T>&, void* scratch);
  void (*reverse)(const Inference<T>&, const Document<T>&, const DocumentTrace<T>&, const DocumentGradient<T>&, void* scratch);
  double (*decode)(const Inference<T>&, const Document<T>&, const T* theta, const DocumentTrace<T>&, T* grad_theta, void* scratch);
  T (*dot)(const T* a, const T* b, int64_t n);
  void (*add_scaled)(T* to, T factor, const T* from, int64_t n);
  void (*mirror_row)(T* z, T* average, const FrameVectors<T>&, const T* gradient, const T* rate, T* change, int n_topics);
  void (*settle_row)(T* z, T* average, const FrameVectors<T>&, int n_topics);
  void (*log_ratio)(const T* now, const T* before, const T* shift, const T* floor, T weight, T* out, int n_topics);
  void (*add_squares)(const T* row, double* sums, int n_topics);
};

template <class T>
struct KernelSet {
  const char* name;
  const Kernels<T>* kernels;
};

}  // namespace mirrorlda
