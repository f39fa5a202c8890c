#include "parallel/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#if defined(_WIN32)
#include <process.h>
static int process_id() { return _getpid(); }
#else
#include <unistd.h>
static int process_id() { return getpid(); }
#endif

namespace mirrorlda {
namespace {

struct Job {
  const std::function<void(int64_t, int)>& work;
  const int64_t n_tasks;
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable left;
  int inside = 0;  // helpers that have not left yet

  Job(const std::function<void(int64_t, int)>& w, int64_t n) : work(w), n_tasks(n) {}

  void run(int worker) {
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < n_tasks;) {
      try {
        work(task, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(n_tasks, std::memory_order_relaxed);
      }
    }
  }
};

struct Invitation {
  Job* job;
  int worker;
};

class Pool {
 public:
  void invite(Job& job, int n_helpers) {
    std::lock_guard lock(mutex_);
    try {
      for (int i = 0; i < n_helpers; ++i, ++job.inside, ++n_open_) invitations_.push_back({&job, i + 1});
      while (n_threads_ - n_busy_ < int(invitations_.size()) && n_threads_ < kMostThreads) {
        std::thread([this] { serve(); }).detach();
        ++n_threads_;
      }
    } catch (const std::exception&) {
      // No more threads or memory: those that were invited, and the caller, do the work.
    }
    wake_.notify_all();
  }

  // Takes back the invitations that no thread has accepted, and waits for those that were.
  void finish(Job& job) {
    int withdrawn = 0;
    {
      std::lock_guard lock(mutex_);
      withdrawn = int(std::erase_if(invitations_, [&](const Invitation& i) { return i.job == &job; }));
      n_open_ -= withdrawn;
    }
    std::unique_lock lock(job.mutex);
    job.inside -= withdrawn;
    job.left.wait(lock, [&] { return job.inside == 0; });
  }

 private:
  static constexpr int kMostThreads = 512;
  // The calls of one batch follow each other closely, and waking a thread takes as long as the shortest of them: a thread looks for the next
  // job for some 50 microseconds before it sleeps.
  static constexpr int kSpins = 1500;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  void serve() {
    for (std::unique_lock lock(mutex_);;) {
      lock.unlock();
      for (int i = 0; i < kSpins && n_open_.load(std::memory_order_relaxed) == 0; ++i) relax();
      lock.lock();
      wake_.wait(lock, [&] { return !invitations_.empty(); });
      const Invitation invitation = invitations_.front();
      invitations_.pop_front();
      --n_open_;
      ++n_busy_;
      lock.unlock();
      invitation.job->run(invitation.worker);
      // Free again before the caller goes on: its next job then finds this thread instead of starting another.
      lock.lock();
      --n_busy_;
      std::lock_guard job_lock(invitation.job->mutex);
      --invitation.job->inside;
      invitation.job->left.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Invitation> invitations_;
  std::atomic<int> n_open_{0};  // the number of invitations, for a look without the mutex
  int n_threads_ = 0, n_busy_ = 0;
};

// The threads of a parent do not exist after a fork: a child starts with a pool of its own, and the parent's is left as it is. The pool is
// never destroyed, since its threads wait in it until the process ends.
Pool& pool() {
  static std::atomic<Pool*> current{nullptr};
  static std::atomic<int> owner{0};
  const int process = process_id();
  // Two threads that race here both get a working pool; one of the two is then used by nobody else.
  if (owner.load() != process) {
    current.store(new Pool);
    owner.store(process);
  }
  return *current.load();
}

}  // namespace

void parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t, int)>& work) {
  const int n_helpers = int(std::min<int64_t>(n_threads, n_tasks)) - 1;
  Job job(work, n_tasks);
  if (n_helpers > 0) {
    Pool& shared = pool();
    shared.invite(job, n_helpers);
    job.run(0);
    shared.finish(job);
  } else {
    job.run(0);
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace mirrorlda
