#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "corpus/shard.hpp"

using namespace nanobind::literals;

namespace mirrorlda {
namespace {

// A shard's table of blocks, all of which lie within the shard.
const Block* checked_blocks(const Array<const uint8_t, 1>& shard, const Array<const uint8_t, 1>& table, const BlockFormat& format) {
  require(format.word_bytes >= 2 && format.word_bytes <= 4, "a word has 2, 3 or 4 bytes");
  require(table.shape(0) % sizeof(Block) == 0 && reinterpret_cast<uintptr_t>(table.data()) % alignof(Block) == 0, "the table of blocks");
  const Block* blocks = reinterpret_cast<const Block*>(table.data());
  for (size_t i = 0; i < table.shape(0) / sizeof(Block); ++i) {
    const uint32_t bytes = blocks[i].count_bytes;
    require(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8, "a count has 1, 2, 4 or 8 bytes");
    const uint64_t size = block_size(blocks[i], format);
    require(size <= shard.shape(0) && blocks[i].offset <= shard.shape(0) - size, "a block ends beyond its shard");
  }
  return blocks;
}

template <class T>
void bind_counts(nb::module_& m) {
  m.def(
      "logarithmic",
      [](Array<const T, 1> counts) {
        auto out = new_array<T>({counts.shape(0)});
        {
          nb::gil_scoped_release release;
          logarithmic<T>(CountTable<T>(true), counts.data(), int64_t(counts.shape(0)), out.data());
        }
        return out;
      },
      "counts"_a.noconvert());
  m.def(
      "read_documents",
      [](Array<const uint8_t, 1> shard, Array<const uint8_t, 1> table, Array<const uint32_t, 1> sizes, int block_docs, int word_bytes,
         Array<const int64_t, 1> documents, Array<const int64_t, 1> to, bool logarithmic, Array<int32_t, 1> indices,
         Array<T, 1> counts) {
        const BlockFormat format{word_bytes, 0, 0};
        const CountTable<T> counts_of(logarithmic);
        const Block* blocks = checked_blocks(shard, table, format);
        const int64_t n_blocks = int64_t(table.shape(0) / sizeof(Block)), n_docs = int64_t(sizes.shape(0));
        require(block_docs > 0 && n_docs <= n_blocks * block_docs, "read_documents: there are more documents than blocks hold");
        require(documents.shape(0) == to.shape(0) && indices.shape(0) == counts.shape(0), "read_documents: lengths differ");
        check_range(documents.data(), documents.shape(0), n_docs, "read_documents: a document is out of range");
        bool holds = true;
        {
          nb::gil_scoped_release release;
          int64_t at = 0;  // the document at whose first entry, of its block, `first` stands
          uint64_t first = 0;
          for (size_t i = 0; i < documents.shape(0) && holds; ++i) {
            const int64_t d = documents(i), begin = d / block_docs * block_docs;
            if (at < begin || at > d) at = begin, first = 0;
            for (; at < d; ++at) first += sizes(at);
            const Block& block = blocks[d / block_docs];
            holds = to(i) >= 0 && uint64_t(to(i)) + sizes(d) <= indices.shape(0) && first + sizes(d) <= block.n_entries;
            if (holds) read_document<T>(shard.data(), block, format, first, sizes(d), counts_of, indices.data() + to(i), counts.data() + to(i));
          }
        }
        require(holds, "read_documents: a document ends beyond its block, or beyond the room for it");
      },
      "shard"_a, "table"_a, "sizes"_a, "block_docs"_a, "word_bytes"_a, "documents"_a, "to"_a, "logarithmic"_a, "indices"_a.noconvert(),
      "counts"_a.noconvert());
}

}  // namespace

void bind_shards(nb::module_& m) {
  m.def(
      "is_sound",
      [](Array<const uint8_t, 1> shard, Array<const uint8_t, 1> table, Array<const uint32_t, 1> sizes, int block, int word_bytes,
         int64_t n_words, double largest_count) {
        const BlockFormat format{word_bytes, n_words, largest_count};
        const Block* blocks = checked_blocks(shard, table, format);
        require(block >= 0 && size_t(block) < table.shape(0) / sizeof(Block), "is_sound: a block is out of range");
        nb::gil_scoped_release release;
        return is_sound(shard.data(), blocks[block], format, sizes.data(), int64_t(sizes.shape(0)));
      },
      "shard"_a, "table"_a, "sizes"_a, "block"_a, "word_bytes"_a, "n_words"_a, "largest_count"_a);
  bind_counts<float>(m);
  bind_counts<double>(m);
}

}  // namespace mirrorlda
