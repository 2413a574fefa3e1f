// Hostile templates end with an error, soon.
#include <gtest/gtest.h>

#include <string>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/parser.h"

namespace muster::jinja {
namespace {

std::string Repeat(const std::string& text, size_t count) {
  std::string repeated;
  for (size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

Status StatusOf(const std::string& source) {
  const auto parsed = ParseTemplate(source);
  if (!parsed.ok()) return parsed.status();
  return Render(*parsed, {}, {}).status();
}

class HostileTemplateTest : public testing::TestWithParam<std::string> {};

TEST_P(HostileTemplateTest, ExhaustsItsLimits) {
  const Status status = StatusOf(GetParam());
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.message();
}

INSTANTIATE_TEST_SUITE_P(
    Rendering, HostileTemplateTest,
    testing::Values(
        "{{ range(1000000000) }}",
        "{{ range(-9223372036854775807, 9223372036854775807) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}"
        "{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{{ x(x) }}{% endmacro %}{{ f(f) }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ 'a' * 10**9 }}", "{{ 'a' * 9223372036854775807 }}",
        "{{ [1] * 10**9 }}", "{{ [[1] * 1000] * 10**8 }}",
        "{{ 'a'.center(10**9) }}", "{{ 'a' | center(10**9) }}",
        "{{ 'a' | indent(10**9) }}", "{{ [1] | tojson(indent=10**9) }}",
        "{% set n = namespace(s='ab') %}{% for i in range(64) %}"
        "{% set n.s = n.s + n.s %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for i in range(64) %}"
        "{% set n.s = n.s.replace('a', n.s) %}{% endfor %}",
        "{% set n = namespace(s='a,') %}{% for i in range(64) %}"
        "{% set n.s = n.s.join([n.s, n.s]) %}{% endfor %}",
        "{% set n = namespace(l=[1]) %}{% for i in range(64) %}"
        "{% set n.l = n.l + n.l %}{% endfor %}",
        // Lists that hold each other twice: small in memory, huge when walked.
        "{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
        "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
        "{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
        "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson }}",
        "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
        "{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}"
        "{{ n.a == n.b }}",
        "{% set n = namespace(l=[1]) %}{% for i in range(200) %}"
        "{% set n.l = [n.l] %}{% endfor %}",
        "{% set n = namespace(l={}) %}{% for i in range(200) %}"
        "{% set n.l = {'k': n.l} %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{% set s = 'x' * 8000000 %}{{ s.split('x') }}",
        "{% set s = 'x' * 8000000 %}{{ s | list }}",
        "{% set s = 'x' * 8000000 %}{{ [s] * 9999 == [s + ''] * 9999 }}",
        "{% set s = 'x' * 4000000 %}"
        "{{ ([s] * 50000 + [s + 'a']) | sort | length }}",
        "{% set n = namespace(s='a') %}{% for i in range(9999) %}"
        "{% set ns2 = namespace(x='y' * 100000) %}{% endfor %}",
        "{% for i in range(99999) %}{% macro f() %}{% endmacro %}"
        "{% for j in range(100) %}{% macro g() %}{% endmacro %}{% endfor %}"
        "{% endfor %}",
        "{{ ('%1000d' * 9000) % ((1,) * 9000) }}{{ '%s' * 99999 }}"
        "{{ 'x' * 8388608 }}"));

class DeepTemplateTest : public testing::TestWithParam<std::string> {};

TEST_P(DeepTemplateTest, IsRefusedByTheParser) {
  const Status status = StatusOf(GetParam());
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.message();
}

constexpr size_t kDeep = 100'000;

INSTANTIATE_TEST_SUITE_P(
    Parsing, DeepTemplateTest,
    testing::Values(
        "{{ " + Repeat("(", kDeep), "{{ " + Repeat("[", kDeep),
        "{{ " + Repeat("{1:", kDeep),
        "{{ " + Repeat("(", kDeep) + "1" + Repeat(")", kDeep) + " }}",
        "{{ " + Repeat("not ", kDeep) + "1 }}",
        "{{ " + Repeat("-", kDeep) + "1 }}",
        "{{ 1" + Repeat("+1", kDeep) + " }}",
        "{{ 1" + Repeat("**1", kDeep) + " }}",
        "{{ 1" + Repeat(" or 1", kDeep / 2) + " }}",
        "{{ a" + Repeat(".a", kDeep) + " }}",
        "{{ a" + Repeat("[0]", kDeep) + " }}",
        "{{ a" + Repeat("(1)", kDeep) + " }}",
        "{{ a" + Repeat("|e", kDeep) + " }}",
        "{{ " + Repeat("f(", kDeep) + " }}",
        "{{ " + Repeat("1 if 1 else ", kDeep / 4) + "1 }}",
        "{{ 1" + Repeat(" if 1", kDeep / 2) + " }}",
        "{{ 1 is " + Repeat("in (1 is ", kDeep / 4) + " }}",
        "{% set " + Repeat("(", kDeep) + " %}", Repeat("{% if 1 %}", kDeep / 4),
        Repeat("{% for a in b %}", kDeep / 4),
        Repeat("{% macro a() %}", kDeep / 4),
        Repeat("{% generation %}", kDeep / 4), Repeat("{% set a %}", kDeep / 4),
        std::string(kMaxTemplateBytes + 1, 'x'), std::string("\xff\xfe")));

TEST(LimitsTest, ManyBranchesAreNotDeep) {
  const std::string source =
      "{% if 0 %}" + Repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}";
  EXPECT_TRUE(StatusOf(source).ok());
}

TEST(LimitsTest, ALongListIsNotDeep) {
  EXPECT_TRUE(StatusOf("{{ [" + Repeat("1,", 5000) + "] | length }}").ok());
  EXPECT_TRUE(StatusOf("{{ 1" + Repeat("~1", 5000) + " }}").ok());
}

TEST(LimitsTest, NothingOfTheHostIsReachable) {
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ [].__class__() }}",
        "{{ messages.__globals__.x }}", "{{ range.__self__.x }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}", "{{ ''['__class__']['__base__'] }}",
        "{{ [] | attr('__class__') | attr('__base__') | attr('x') }}"}) {
    EXPECT_FALSE(StatusOf(source).ok()) << source;
  }
}

TEST(LimitsTest, ANamespaceThatHoldsItselfIsHarmless) {
  const std::string itself = "{% set n = namespace() %}{% set n.n = [n] %}";
  EXPECT_TRUE(StatusOf(itself + "{{ n.n[0].n[0] == n }}").ok());
  EXPECT_FALSE(StatusOf(itself + "{{ n }}").ok());
  EXPECT_FALSE(StatusOf(itself + "{{ n | tojson }}").ok());
}

TEST(LimitsTest, DeepJsonIsRefused) {
  EXPECT_FALSE(ValueFromJson(Repeat("[", kDeep), Origin::kInput).ok());
  EXPECT_FALSE(ValueFromJson(Repeat("{\"a\":", kDeep), Origin::kInput).ok());
  EXPECT_FALSE(ValueFromJson("[18446744073709551615]", Origin::kInput).ok());
  EXPECT_FALSE(ValueFromJson("[123456789012345678901]", Origin::kInput).ok());
  EXPECT_FALSE(ValueFromJson("\"\xff\"", Origin::kInput).ok());
  EXPECT_TRUE(
      ValueFromJson(Repeat("[", 99) + Repeat("]", 99), Origin::kInput).ok());
}

TEST(LimitsTest, OverflowIsAnError) {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 3 ** 99 }}", "{{ 9223372036854775807 * 2 }}",
        "{{ 9223372036854775808 }}", "{{ 10.0 ** 999 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1) | abs }}"}) {
    EXPECT_FALSE(StatusOf(source).ok()) << source;
  }
}

}  // namespace
}  // namespace muster::jinja
