// A small pool of threads: no OpenMP runtime, safe after fork, shared by all callers of the process.
#pragma once

#include <cstdint>
#include <functional>

namespace mirrorlda {

// Calls work(task, worker) for every task in [0, n_tasks), on up to n_threads threads; the caller is worker 0. Which worker takes a task
// is not determined: results must not depend on it. An exception of a task is thrown here when all others have ended.
void parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t task, int worker)>& work);

}  // namespace mirrorlda
