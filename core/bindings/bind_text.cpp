#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <system_error>

#include "bindings/module.hpp"
#include "text/word_counts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mirrorlda {
namespace {

// Copies of texts that are not ASCII are made for as many bytes at a time.
constexpr size_t kCopies = size_t(64) << 20;

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(std::vector<T>&& values) {
  auto* const owned = new std::vector<T>(std::move(values));
  return {owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); })};
}

nb::bytes encoded(nb::handle text, const char* errors = "surrogatepass") {
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", errors);
  if (!bytes) throw nb::python_error();
  return nb::steal<nb::bytes>(bytes);
}

nb::str decoded(std::string_view word) { return nb::str(word.data(), word.size()); }

// Part of a list of strings as UTF-8. ASCII strings are read where they are. Of others a copy is made, since Python's own copy would stay as
// long as the string.
class Strings {
 public:
  // From `begin` on, as many as have kCopies bytes of copies; end() is where the next part begins. In errors the list begins at `first`.
  Strings(const nb::list& list, size_t begin, size_t first = 0, const char* what = "text", const char* errors = "surrogatepass")
      : end_(begin) {
    size_t copied = 0;
    for (; end_ < list.size() && copied < kCopies; ++end_) {
      nb::object text = list[end_];
      if (!PyUnicode_Check(text.ptr())) {
        const nb::str message = nb::str("{} {} must be a string, got {:.60} of type {}")
                                    .format(what, first + end_, nb::repr(text), text.type().attr("__name__"));
        throw nb::type_error(message.c_str());
      }
      Py_ssize_t size = 0;
      const char* data = nb::cast<bool>(text.attr("isascii")()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
      if (!data) {
        PyErr_Clear();
        nb::bytes copy = encoded(text, errors);
        data = copy.c_str();
        size = Py_ssize_t(copy.size());
        copied += copy.size();
        text = std::move(copy);
      }
      views_.emplace_back(data, size_t(size));
      owners_.push_back(std::move(text));
    }
  }
  const Texts& views() const { return views_; }
  size_t end() const { return end_; }

 private:
  Texts views_;
  std::vector<nb::object> owners_;
  size_t end_;
};

// A compressed sparse row matrix: indptr, indices, counts. Takes the memory of the rows as it goes.
nb::tuple as_csr(std::vector<CountRows>&& blocks) {
  size_t n_docs = 0, n_entries = 0;
  for (const CountRows& rows : blocks) n_docs += rows.sizes.size(), n_entries += rows.columns.size();
  std::vector<int64_t> indptr;
  std::vector<int32_t> indices;
  std::vector<float> counts;
  indptr.reserve(n_docs + 1);
  indices.reserve(n_entries);
  counts.reserve(n_entries);
  indptr.push_back(0);
  for (CountRows& block : blocks) {
    const CountRows rows = std::move(block);
    for (const int64_t size : rows.sizes) indptr.push_back(indptr.back() + size);
    indices.insert(indices.end(), rows.columns.begin(), rows.columns.end());
    counts.insert(counts.end(), rows.counts.begin(), rows.counts.end());
  }
  return nb::make_tuple(as_array(std::move(indptr)), as_array(std::move(indices)), as_array(std::move(counts)));
}

void check_threads(int n_threads) {
  if (n_threads < 1) throw std::invalid_argument("n_threads must be positive");
}

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void insert_new(WordTable& words, std::string_view word, size_t place) {
  if (words.insert(word) != int64_t(place)) throw std::invalid_argument("word " + std::to_string(place) + " is there twice: " + std::string(word));
  if (words.size() > INT32_MAX) throw std::length_error("a vocabulary has at most 2,147,483,647 words");
}

WordTable words_from_list(const nb::list& list) {
  WordTable words;
  for (size_t begin = 0; begin < list.size();) {
    const Strings part(list, begin, 0, "word", "strict");
    for (const std::string_view word : part.views()) insert_new(words, word, begin++);
  }
  return words;
}

// Words that stand one after another; valid as long as `letters`.
std::vector<std::string_view> words_of(const Bytes& letters, const Offsets& offsets) {
  const size_t n = offsets.shape(0);
  bool holds = n > 0 && offsets(0) == 0 && size_t(offsets(n - 1)) == letters.shape(0);
  for (size_t i = 1; i < n; ++i) holds &= offsets(i - 1) <= offsets(i);
  if (!holds) throw std::invalid_argument("offsets must ascend from 0 to the number of letters");
  const char* data = reinterpret_cast<const char*>(letters.data());
  std::vector<std::string_view> words;
  words.reserve(n - 1);
  for (size_t i = 0; i + 1 < n; ++i) words.emplace_back(data + offsets(i), size_t(offsets(i + 1) - offsets(i)));
  return words;
}

WordTable words_from_arrays(Bytes letters, Offsets offsets) {
  const std::vector<std::string_view> given = words_of(letters, offsets);
  WordTable words;
  nb::gil_scoped_release release;
  for (size_t i = 0; i < given.size(); ++i) insert_new(words, given[i], i);
  return words;
}

// Counted words, ascending, as arrays: letters, offsets, totals, documents.
nb::tuple counted_as_arrays(WordCounts& counts) {
  std::vector<uint8_t> letters;
  std::vector<int64_t> offsets{0}, totals, docs;
  {
    nb::gil_scoped_release release;
    counts.visit([&](const CountedWord& counted) {
      letters.insert(letters.end(), counted.word.begin(), counted.word.end());
      offsets.push_back(int64_t(letters.size()));
      totals.push_back(int64_t(counted.total));
      docs.push_back(int64_t(counted.docs));
    });
  }
  return nb::make_tuple(as_array(std::move(letters)), as_array(std::move(offsets)), as_array(std::move(totals)), as_array(std::move(docs)));
}

void add_counted(WordCounts& counts, Bytes letters, Offsets offsets, Offsets totals, Offsets docs, int64_t n_docs) {
  const std::vector<std::string_view> words = words_of(letters, offsets);
  if (totals.shape(0) != words.size() || docs.shape(0) != words.size()) throw std::invalid_argument("a word must have two counts");
  std::vector<CountedWord> counted;
  counted.reserve(words.size());
  for (size_t i = 0; i < words.size(); ++i) counted.push_back({words[i], uint64_t(totals(i)), uint64_t(docs(i))});
  nb::gil_scoped_release release;
  counts.add(counted, n_docs);
}

nb::tuple arrays_of(const WordTable& words) {
  std::vector<uint8_t> letters;
  std::vector<int64_t> offsets{0};
  for (int64_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    letters.insert(letters.end(), word.begin(), word.end());
    offsets.push_back(int64_t(letters.size()));
  }
  return nb::make_tuple(as_array(std::move(letters)), as_array(std::move(offsets)));
}

}  // namespace

void bind_text(nb::module_& m) {
  m.attr("UNICODE_VERSION") = unicode::kVersion;
  m.def("is_assigned", [](uint32_t c) { return c < 0x110000 && unicode::record(c).flags & unicode::kAssigned; }, "code_point"_a);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::system_error& error) {
      PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.code().value(), error.what()).ptr());
    }
  });

  nb::class_<TextDefinition>(m, "TextDefinition", "How text becomes words.")
      .def("__init__",
           [](TextDefinition* self, bool lowercase, bool bigrams, const nb::list& stop_words) {
             std::vector<std::string> texts;
             for (size_t begin = 0; begin < stop_words.size();) {
               const Strings part(stop_words, begin);
               texts.insert(texts.end(), part.views().begin(), part.views().end());
               begin = part.end();
             }
             new (self) TextDefinition(text_definition(lowercase, bigrams, texts));
           },
           "lowercase"_a, "bigrams"_a, "stop_words"_a)
      .def("words", [](const TextDefinition& self, nb::str text) {
        nb::list list, out;
        list.append(text);
        const Strings strings(list, 0);
        WordReader(self).read(strings.views().front(), [&](PaddedWord word) { out.append(decoded(word.view())); });
        return out;
      }, "text"_a);

  nb::class_<WordTable>(m, "WordTable", "Distinct words, numbered.")
      .def("__init__", [](WordTable* self, const nb::list& words) { new (self) WordTable(words_from_list(words)); }, "words"_a)
      .def_static("from_arrays", &words_from_arrays, "letters"_a, "offsets"_a)
      .def("arrays", &arrays_of)
      .def("__len__", &WordTable::size)
      .def("find", [](const WordTable& self, nb::str word) {
        const nb::bytes bytes = encoded(word);
        return self.find(std::string_view(bytes.c_str(), bytes.size()));
      }, "word"_a)
      .def("word", [](const WordTable& self, int64_t number) {
        if (number < 0 || number >= self.size()) throw nb::index_error("no such column");
        return decoded(self[number]);
      }, "number"_a)
      .def("words", [](const WordTable& self) {
        nb::list out;
        for (int64_t i = 0; i < self.size(); ++i) out.append(decoded(self[i]));
        return out;
      })
      .def("count", [](const WordTable& self, const TextDefinition& definition, const nb::list& texts, size_t first, int n_threads) {
        check_threads(n_threads);
        std::vector<CountRows> blocks;
        for (size_t begin = 0; begin < texts.size();) {
          const Strings part(texts, begin, first);
          nb::gil_scoped_release release;
          for (CountRows& rows : count_texts(definition, self, part.views(), n_threads)) blocks.push_back(std::move(rows));
          begin = part.end();
        }
        return as_csr(std::move(blocks));
      }, "definition"_a, "texts"_a, "first"_a, "n_threads"_a);

  nb::class_<WordCounts>(m, "WordCounts", "Words counted over many texts.")
      .def(nb::init<const TextDefinition&, size_t, std::string, bool>(), "definition"_a, "memory"_a, "directory"_a, "keep_documents"_a)
      .def("add", [](WordCounts& self, const nb::list& texts, size_t first, int n_threads) {
        check_threads(n_threads);
        for (size_t begin = 0; begin < texts.size();) {
          const Strings part(texts, begin, first);
          nb::gil_scoped_release release;
          self.add(part.views(), n_threads);
          begin = part.end();
        }
      }, "texts"_a, "first"_a, "n_threads"_a)
      .def("counted", &counted_as_arrays)
      .def("add_counted", &add_counted, "letters"_a, "offsets"_a, "totals"_a, "docs"_a, "n_docs"_a)
      .def_prop_ro("n_docs", &WordCounts::n_docs, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("n_runs", &WordCounts::n_runs, nb::call_guard<nb::gil_scoped_release>())
      .def("select", [](WordCounts& self, uint64_t max_words, uint64_t min_docs, uint64_t min_phrase_docs, uint64_t max_docs) {
        Selection selection;
        {
          nb::gil_scoped_release release;
          selection = self.select({std::min<uint64_t>(max_words, INT32_MAX), min_docs, min_phrase_docs, max_docs});
        }
        return nb::make_tuple(nb::cast(std::move(selection.words)), as_array(std::move(selection.totals)), selection.n_distinct);
      }, "max_words"_a, "min_docs"_a, "min_phrase_docs"_a, "max_docs"_a)
      .def("documents", [](WordCounts& self, const WordTable& vocabulary, int n_threads) {
        check_threads(n_threads);
        std::vector<CountRows> blocks;
        {
          nb::gil_scoped_release release;
          blocks = self.documents(vocabulary, n_threads);
        }
        return as_csr(std::move(blocks));
      }, "vocabulary"_a, "n_threads"_a);
}

}  // namespace mirrorlda
