// Counted words on disk, sorted, for when there are more of them than memory; and their merging.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mirrorlda {

struct CountedWord {
  std::string_view word;
  uint64_t total, docs;
};

// A file that nobody else sees: it has no name where the system allows that, and else is removed with this object.
class Run {
 public:
  explicit Run(const std::string& directory);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Words must come in ascending order of their bytes.
  void write(const CountedWord& counted);
  // To be called once, after the last word.
  void end();

 private:
  friend class RunReader;
  void write_number(uint64_t value);
  void write_bytes(const char* bytes, size_t n);

  std::string path_;
  std::FILE* file_;
  uint64_t n_words_ = 0;
};

// Calls visit for every word of the runs, in ascending order, with the sums of its counts.
void merge(const std::vector<std::unique_ptr<Run>>& runs, const std::function<void(const CountedWord&)>& visit);

}  // namespace mirrorlda
