#include "tokenizer/jinja/text.h"

#include <gtest/gtest.h>

namespace muster::jinja {
namespace {

// [bytes of a user] in brackets.
std::string Marked(const Text& text) {
  std::string marked;
  size_t pos = 0;
  for (const ByteRange& range : text.input_ranges()) {
    marked += text.bytes().substr(pos, range.begin - pos) + "[";
    marked += text.bytes().substr(range.begin, range.end - range.begin) + "]";
    pos = range.end;
  }
  return marked + text.bytes().substr(pos);
}

Text Mixed() {
  Text text("ab");
  text.Append(Text::FromInput("cd"));
  text.Append("ef");
  text.Append(Text::FromInput("gh"));
  return text;
}

TEST(TextTest, AppendKeepsMarks) { EXPECT_EQ(Marked(Mixed()), "ab[cd]ef[gh]"); }

TEST(TextTest, NeighbouringMarksBecomeOne) {
  Text text = Text::FromInput("a");
  text.Append(Text::FromInput("b"));
  EXPECT_EQ(text.input_ranges().size(), 1u);
}

TEST(TextTest, EmptyInputLeavesNoMark) {
  Text text("a");
  text.Append(Text::FromInput(""));
  text.AppendMarked("", true);
  EXPECT_FALSE(text.has_input());
}

TEST(TextTest, EveryPartKeepsTheMarksOfItsBytes) {
  const Text text = Mixed();
  for (size_t begin = 0; begin <= text.size(); ++begin) {
    for (size_t end = begin; end <= text.size(); ++end) {
      Text expected;
      for (size_t i = begin; i < end; ++i) {
        expected.AppendMarked(text.view().substr(i, 1), i % 4 >= 2);
      }
      EXPECT_EQ(Marked(text.Part(begin, end)), Marked(expected));
    }
  }
}

}  // namespace
}  // namespace muster::jinja
