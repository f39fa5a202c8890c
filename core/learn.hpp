// The learning step over the rows of a batch, and the small products of the response, on several threads with fixed blocks.
#pragma once

#include <cstdint>

namespace mirrorlda {

// What a row that was written at step s needs to be read at a later one: vectors over topics, one record a step since the last flush, with
// M_t = M_{t-1} / C_t,  B_t = B_{t-1} + c_t / M_{t-1},  A_t = A_{t-1} + w_t M_t,  E_t = E_{t-1} + w_t M_t B_t
// for the normalisers C_t, the prior's c_t, and the weight w_t of step t in the running average.
struct History {
  const double* records;  // (n_steps + 1, 4, n_topics): M, B, A, E
  int64_t step;           // the record to catch up with
};

// Brings `rows` of phi from their own step last[row] to history.step and adds the steps between to `average` (NULL: no average).
// Equivalent, with the records of s = last[row] and t = history.step, to
//   average[row] += phi[row] / M_s * (A_t - A_s) + (E_t - E_s) - B_s * (A_t - A_s)
//   phi[row] = M_t * (phi[row] / M_s + B_t - B_s)
template <class T>
void catch_up(T* phi, T* average, int32_t* last, int n_topics, const History& history, const int32_t* rows, int64_t n_rows, int n_threads);

// phi[rows] = max(phi[rows] exp(clip(-rate gradient)), floor); `before` and `after` (n_topics,) are the sums over these rows.
template <class T>
void mirror_rows(T* phi, int n_topics, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, const T* rate,
                 double* before, double* after, int n_threads);

// Equivalent to (gradient.astype(float) ** 2).sum(axis=0)
template <class T>
void column_squares(const T* gradient, int64_t n_rows, int64_t stride, int n_topics, double* squares, int n_threads);

// Equivalent to theta @ U.T
template <class T>
void scores(const T* theta, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads);

// Equivalent to grad_scores @ U
template <class T>
void back_scores(const T* grad_scores, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads);

// Equivalent to grad_scores.T @ theta
template <class T>
void outer(const T* grad_scores, const T* theta, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads);

}  // namespace mirrorlda
