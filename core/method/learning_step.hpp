// The learning step over the rows of a batch, and the small products of the response, on several threads with fixed blocks.
#pragma once

#include <cstdint>

namespace mirrorlda {

// Rows of Phi are kept as z, which a step leaves where a row has no data gradient: at step t phi = M_t (z + B_t), with
//   M_t = M_{t-1} / C_t,  B_t = B_{t-1} + c_t / M_{t-1}
// for the normalisers C_t and the prior's c_t, so that z stays while phi <- (phi + c) / C. With the weights w_t of the running average,
//   A_t = A_{t-1} + w_t M_t,  E_t = E_{t-1} + w_t M_t B_t
// the average of a row that was never touched is z A_t + E_t; `average` holds what has to be added to that for other rows.
template <class T>
struct Rows {
  T* z;        // (n_words, n_topics)
  T* average;  // the same shape, or NULL
  int n_topics;
  const double* frame;  // (4, n_topics): M, B, A, E
};

// new = max(phi[i] exp(clip(-rate gradient)), floor) for `rows`, and z, `average` as of this `new`: + c and / C is left to the frame.
// `change` (n_topics,) is the sum of new - phi over these rows.
template <class T>
void mirror_rows(const Rows<T>& phi, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, const T* rate, double* change,
                 int n_threads);

// All rows in the frame M = 1, B = A = E = 0. Equivalent to average[:] = np.maximum(average + z * A + E, 0);
//   z[:] = np.maximum(M * (z + B), 0); sums[0] = z.sum(axis=0); sums[1] = average.sum(axis=0), or zero
template <class T>
void settle(const Rows<T>& phi, int64_t n_words, double* sums, int n_threads);

// What themes have of the occurrences of words is added to what they have: counts[row] += factor * added, with added the gradient of the
// words' -ln p times minus the theme, itself scale * counts[row] + shift. `totals` (n_topics,) are the sums over rows.
template <class T>
void count_rows(T* counts, const int32_t* rows, int64_t n_rows, const T* gradient, int64_t stride, int n_topics, const T* scale,
                const T* shift, T factor, double* totals, int n_threads);

// Equivalent to (gradient.astype(float) ** 2).sum(axis=0)
template <class T>
void column_squares(const T* gradient, int64_t n_rows, int64_t stride, int n_topics, double* squares, int n_threads);

// Equivalent to sums[i] = (a * b)[indices == rows[i]].sum(), of documents in blocks of `per_block`; false if a word of `indices` is not among
// `rows`. All are below n_words.
template <class T>
bool row_sums(const int32_t* rows, int64_t n_rows, const int64_t* indptr, const int32_t* indices, const T* a, const T* b, int64_t n_docs,
              int64_t n_words, int64_t per_block, double* sums);

// How the words' weights move in one step.
struct WeightStep {
  double rate, clip, lowest, highest, average_weight;
};

// Equivalent to new = np.clip(weights[rows] * np.exp(np.clip(-rate * gradient, -clip, clip)), lowest, highest);
//   lag[rows] += average_weight * (new - weights[rows]); weights[rows] = new
void weigh_rows(double* weights, double* lag, const int32_t* rows, int64_t n_rows, const double* gradient, const WeightStep& step,
                int n_threads);

// Equivalent to theta @ U.T
template <class T>
void scores(const T* theta, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads);

// Equivalent to grad_scores @ U
template <class T>
void back_scores(const T* grad_scores, const T* U, int64_t n_docs, int n_topics, int n_outputs, T* out, int n_threads);

// Equivalent to grad_scores.T @ theta, of documents in blocks of `per_block`
template <class T>
void outer(const T* grad_scores, const T* theta, int64_t n_docs, int n_topics, int n_outputs, int64_t per_block, double* out, int n_threads);

// Equivalent to rows[:] = rows @ np.linalg.inv(matrix), for a symmetric matrix, of which the lower triangle is read and its Cholesky factor
// left in its place. Whether it is positive definite; if not, the rows stay.
bool solve_rows(double* matrix, int64_t size, double* rows, int64_t n_rows, int n_threads);

}  // namespace mirrorlda
