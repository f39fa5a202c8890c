#include "text/spilled_words.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#if defined(_WIN32)
#include <random>
#else
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#endif

namespace mirrorlda {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno ? errno : EIO, std::generic_category(), "temporary file of counted words " + path);
}

}  // namespace

Run::Run(const std::string& directory) {
#if defined(_WIN32)
  std::random_device device;
  path_ = directory + "\\mirrorlda-" + std::to_string(device()) + std::to_string(device());
  file_ = std::fopen(path_.c_str(), "w+bx");
  if (!file_) fail(path_);
#else
  path_ = directory + "/mirrorlda-XXXXXX";
  const int descriptor = mkstemp(path_.data());
  if (descriptor < 0) fail(path_);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  unlink(path_.c_str());
  file_ = fdopen(descriptor, "w+b");
  if (!file_) {
    close(descriptor);
    fail(path_);
  }
#endif
}

Run::~Run() {
  std::fclose(file_);
#if defined(_WIN32)
  std::remove(path_.c_str());
#endif
}

void Run::write_bytes(const char* bytes, size_t n) {
  if (std::fwrite(bytes, 1, n, file_) != n) fail(path_);
}

// Seven bits a byte, the lowest first.
void Run::write_number(uint64_t value) {
  char bytes[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) bytes[n++] = char(value | 0x80);
  bytes[n++] = char(value);
  write_bytes(bytes, n);
}

void Run::write(const CountedWord& counted) {
  write_number(counted.word.size());
  write_bytes(counted.word.data(), counted.word.size());
  write_number(counted.total);
  write_number(counted.docs);
  ++n_words_;
}

void Run::end() {
  if (std::fflush(file_) != 0) fail(path_);
}

class RunReader {
 public:
  explicit RunReader(const Run& run) : run_(run), left_(run.n_words_) { std::rewind(run.file_); }

  bool next() {
    if (left_ == 0) return false;
    --left_;
    word_.resize(read_number());
    if (std::fread(word_.data(), 1, word_.size(), run_.file_) != word_.size()) fail(run_.path_);
    total = read_number();
    docs = read_number();
    return true;
  }
  const std::string& word() const { return word_; }
  uint64_t total = 0, docs = 0;

 private:
  uint64_t read_number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const int byte = std::fgetc(run_.file_);
      if (byte == EOF) fail(run_.path_);
      value |= uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  const Run& run_;
  uint64_t left_;
  std::string word_;
};

void merge(const std::vector<std::unique_ptr<Run>>& runs, const std::function<void(const CountedWord&)>& visit) {
  std::vector<RunReader> readers;
  for (const auto& run : runs) readers.emplace_back(*run);
  std::vector<RunReader*> heap;
  for (RunReader& reader : readers)
    if (reader.next()) heap.push_back(&reader);
  const auto later = [](const RunReader* a, const RunReader* b) { return a->word() > b->word(); };
  std::make_heap(heap.begin(), heap.end(), later);
  std::string word;
  while (!heap.empty()) {
    word = heap.front()->word();
    uint64_t total = 0, docs = 0;
    while (!heap.empty() && heap.front()->word() == word) {
      std::pop_heap(heap.begin(), heap.end(), later);
      total += heap.back()->total;
      docs += heap.back()->docs;
      if (heap.back()->next())
        std::push_heap(heap.begin(), heap.end(), later);
      else
        heap.pop_back();
    }
    visit({word, total, docs});
  }
}

}  // namespace mirrorlda
