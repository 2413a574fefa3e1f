#include "cli/simulate/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace muster::cli {
namespace {

// Of the picture and of the part inside the axes, in its units.
constexpr double kWidth = 720, kHeight = 460;
constexpr double kLeft = 70, kRight = 690, kTop = 60, kBottom = 400;

// Colours that people who see few can tell apart (Okabe and Ito, 2008), and
// dashes for those who see none.
struct LineStyle {
  const char* colour;
  const char* dashes;
};
constexpr std::array<LineStyle, 6> kStyles = {{{"#0072b2", "none"},
                                               {"#d55e00", "8 3"},
                                               {"#009e73", "2 3"},
                                               {"#000000", "9 3 2 3"},
                                               {"#cc79a7", "5 2"},
                                               {"#e69f00", "1 2"}}};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // Names may hold anything; a picture must be well-formed.
        out += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return out;
}

struct Point {
  double x = 0;
  double y = 0;
};

class Plot {
 public:
  explicit Plot(const SimulationReport& report) : report_(report) {
    double lowest = 1;
    for (const SimulatedCase& one : report.cases) {
      lowest = std::min(lowest, one.simulation.decode.rate());
    }
    // A whole ten below, and room for two lines of a grid at least.
    bottom_rate_ = std::min(80.0, std::floor(lowest * 10) * 10);
  }

  std::string Draw() const {
    std::string svg = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" )"
        R"(width="{0}" height="{1}" font-family="sans-serif" font-size="13">)"
        "\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight);
    svg += Title() + Grid();
    for (size_t p = 0; p < report_.policies.size(); ++p) svg += Line(p);
    return svg + Legend() + "</svg>\n";
  }

 private:
  double X(double percent) const {
    return kLeft + percent / 100 * (kRight - kLeft);
  }
  double Y(double percent) const {
    return kBottom -
           (percent - bottom_rate_) / (100 - bottom_rate_) * (kBottom - kTop);
  }

  // `attributes` such as "text-anchor='end'".
  static std::string Text(Point at, std::string_view attributes,
                          const std::string& text) {
    return fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", at.x, at.y,
                       attributes, Escaped(text));
  }

  static std::string Segment(Point from, Point to, std::string_view style) {
    return fmt::format(
        "<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' {}/>\n", from.x,
        from.y, to.x, to.y, style);
  }

  std::string Title() const {
    const std::string what =
        report_.model.empty() ? report_.trace : report_.model;
    return Text({kLeft, 24}, "font-size='16' font-weight='bold'",
                "Hits of a cache of experts") +
           Text({kLeft, 44}, "fill='#555555'",
                fmt::format("{}, {} tokens", what, report_.num_tokens));
  }

  std::string Grid() const {
    constexpr std::string_view kFaint = "stroke='#dddddd'";
    std::string svg;
    for (int percent = 0; percent <= 100; percent += 10) {
      svg += Segment({X(percent), kTop}, {X(percent), kBottom}, kFaint);
      svg += Text({X(percent), kBottom + 18}, "text-anchor='middle'",
                  fmt::format("{}", percent));
    }
    const int step = bottom_rate_ < 75 ? 10 : 5;
    for (int percent = static_cast<int>(bottom_rate_); percent <= 100;
         percent += step) {
      svg += Segment({kLeft, Y(percent)}, {kRight, Y(percent)}, kFaint);
      svg += Text({kLeft - 8, Y(percent) + 4}, "text-anchor='end'",
                  fmt::format("{}", percent));
    }
    constexpr std::string_view kAxis = "stroke='#333333'";
    svg += Segment({kLeft, kBottom}, {kRight, kBottom}, kAxis);
    svg += Segment({kLeft, kTop}, {kLeft, kBottom}, kAxis);
    svg += Text({(kLeft + kRight) / 2, kBottom + 42}, "text-anchor='middle'",
                "Experts cached, % of all");
    const double middle = (kTop + kBottom) / 2;
    svg += Text({24, middle},
                fmt::format("text-anchor='middle' transform='rotate(-90 24 "
                            "{:.1f})'",
                            middle),
                "Hits, %");
    return svg;
  }

  static const LineStyle& Style(size_t policy) {
    return kStyles[policy % kStyles.size()];
  }

  static std::string Stroke(size_t policy) {
    return fmt::format(
        "fill='none' stroke='{}' stroke-width='2' stroke-dasharray='{}'",
        Style(policy).colour, Style(policy).dashes);
  }

  static std::string Dot(size_t policy, Point at) {
    return fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>\n",
                       at.x, at.y, Style(policy).colour);
  }

  std::string Line(size_t policy) const {
    std::string points, dots;
    for (size_t s = 0; s < report_.sizes.size(); ++s) {
      const double rate = report_.Case(policy, s).simulation.decode.rate();
      const Point at = {X(100 * report_.sizes[s].share), Y(100 * rate)};
      points += fmt::format("{:.1f},{:.1f} ", at.x, at.y);
      dots += Dot(policy, at);
    }
    return fmt::format("<polyline points='{}' {}/>\n", points, Stroke(policy)) +
           dots;
  }

  // At the bottom right: lines rise.
  std::string Legend() const {
    constexpr double kRow = 20, kBoxWidth = 150;
    const double height =
        kRow * static_cast<double>(report_.policies.size()) + 12;
    const Point box = {kRight - kBoxWidth - 10, kBottom - height - 10};
    std::string svg = fmt::format(
        "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' "
        "fill='#ffffff' stroke='#bbbbbb'/>\n",
        box.x, box.y, kBoxWidth, height);
    for (size_t p = 0; p < report_.policies.size(); ++p) {
      const double y = box.y + 16 + kRow * static_cast<double>(p);
      svg += Segment({box.x + 10, y}, {box.x + 46, y}, Stroke(p));
      svg += Dot(p, {box.x + 28, y});
      svg += Text({box.x + 54, y + 4}, "", report_.policies[p]);
    }
    return svg;
  }

  const SimulationReport& report_;
  double bottom_rate_ = 0;  // where the axis begins, %
};

}  // namespace

std::string HitRatePlot(const SimulationReport& report) {
  return Plot(report).Draw();
}

}  // namespace muster::cli
