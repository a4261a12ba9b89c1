// SPDX-License-Identifier: Apache-2.0
// One line per fact, words separated by one space; a step's lines follow its `step` line:
//   plan 1
//   workspace 4096
//   tensor alignment=16 span=1048576 output     (`alias N` where it is tensor N's memory)
//   step kernel kiln_main shared=65536
//   grid 8 4 1
//   artifact 0123...
//   arg tensor 0 +64
//   arg scalar f 0x1.8p+1
#include "proto/contract/plan.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace kiln {
namespace {

constexpr const char* kStepWords[] = {"kernel", "library", "fill", "prepack"};

std::string PrintCounts(const char* word, const std::array<Count, 3>& counts) {
  std::string line = word;
  for (const Count& count : counts) {
    line += " " + (count.expression.empty() ? std::to_string(count.value) : "=" + count.expression);
  }
  return line + "\n";
}

// Hexadecimal, so that every bit survives whatever the locale.
std::string PrintDouble(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  for (char* c = text; *c; ++c) {
    if (*c == ',') *c = '.';
  }
  return text;
}

std::string PrintArgument(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::kTensor:
      return "arg tensor " + std::to_string(argument.index) + " +" +
             std::to_string(argument.offset) + "\n";
    case ArgumentKind::kDim:
      return "arg dim " + std::to_string(argument.index) + "\n";
    case ArgumentKind::kScalar:
      return argument.is_float ? "arg scalar f " + PrintDouble(argument.number) + "\n"
                               : "arg scalar i " + std::to_string(argument.integer) + "\n";
    case ArgumentKind::kWorkspace:
      return std::string("arg ") + (argument.persistent ? "persistent" : "workspace") + " +" +
             std::to_string(argument.offset) + "\n";
  }
  return "";
}

// Reads the words of one line; the first failure sticks.
class Words {
 public:
  explicit Words(const std::string& line) : stream_(line) {}

  std::string Word() {
    std::string word;
    if (!(stream_ >> word)) Fail("a word is missing");
    return word;
  }

  int64_t Integer(const std::string& word) {
    errno = 0;
    char* end = nullptr;
    const long long value = std::strtoll(word.c_str(), &end, 10);
    if (word.empty() || *end != '\0' || errno != 0) Fail("'" + word + "' is no integer");
    return value;
  }
  int64_t Natural(const std::string& word) {
    const int64_t value = Integer(word);
    if (value < 0) Fail("'" + word + "' is negative");
    return value;
  }
  // "NAME=123" or "+123": what stands before the number must be `prefix`.
  int64_t After(const std::string& prefix) {
    const std::string word = Word();
    if (word.compare(0, prefix.size(), prefix) != 0) {
      Fail("'" + word + "' where " + prefix + "NUMBER belongs");
      return 0;
    }
    return Natural(word.substr(prefix.size()));
  }
  int Index() {
    const int64_t value = Natural(Word());
    if (value > std::numeric_limits<int>::max()) Fail("an index is too large");
    return static_cast<int>(value);
  }

  bool AtEnd() { return (stream_ >> std::ws).eof(); }
  void Fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }
  const std::string& error() const { return error_; }

 private:
  std::istringstream stream_;
  std::string error_;
};

std::array<Count, 3> ParseCounts(Words& words) {
  std::array<Count, 3> counts;
  for (Count& count : counts) {
    const std::string word = words.Word();
    if (!word.empty() && word[0] == '=') {
      count.expression = word.substr(1);
      if (count.expression.empty()) words.Fail("an expression is empty");
    } else {
      count.value = words.Natural(word);
    }
  }
  return counts;
}

double ParseDouble(Words& words) {
  const std::string word = words.Word();
  // strtod follows the locale, a stream with the classic one does not read hexadecimal floats: so
  // the point is taken out by hand. The text is what PrintDouble writes: [-]0xH.HHHp[+-]D, inf or
  // nan.
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan" || word == "-nan") return std::numeric_limits<double>::quiet_NaN();
  const size_t point = word.find('.');
  const size_t exponent = word.find('p');
  if (exponent == std::string::npos) {
    words.Fail("'" + word + "' is no hexadecimal float");
    return 0;
  }
  std::string mantissa = word.substr(0, exponent);
  int64_t shift = words.Integer(word.substr(exponent + 1));
  if (shift < -100000 || shift > 100000) {
    words.Fail("the exponent of '" + word + "' is out of range");
    return 0;
  }
  if (point != std::string::npos && point < exponent) {
    shift -= 4 * static_cast<int64_t>(exponent - point - 1);
    mantissa.erase(point, 1);
  }
  const std::string text = mantissa + "p" + std::to_string(shift);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0') words.Fail("'" + word + "' is no hexadecimal float");
  return value;
}

Argument ParseArgument(Words& words) {
  Argument argument;
  const std::string kind = words.Word();
  if (kind == "tensor") {
    argument.index = words.Index();
    argument.offset = words.After("+");
  } else if (kind == "dim") {
    argument.kind = ArgumentKind::kDim;
    argument.index = words.Index();
  } else if (kind == "workspace" || kind == "persistent") {
    argument.kind = ArgumentKind::kWorkspace;
    argument.persistent = kind == "persistent";
    argument.offset = words.After("+");
  } else if (kind == "scalar") {
    argument.kind = ArgumentKind::kScalar;
    const std::string type = words.Word();
    argument.is_float = type == "f";
    if (type == "f") {
      argument.number = ParseDouble(words);
    } else if (type == "i") {
      argument.integer = words.Integer(words.Word());
    } else {
      words.Fail("'" + type + "' where f or i belongs");
    }
  } else {
    words.Fail("'" + kind + "' is no kind of argument");
  }
  return argument;
}

void ParseStep(Words& words, Plan* plan) {
  Step step;
  const std::string kind = words.Word();
  int found = -1;
  for (int i = 0; i < 4; ++i) {
    if (kind == kStepWords[i]) found = i;
  }
  if (found < 0) words.Fail("'" + kind + "' is no kind of step");
  step.kind = static_cast<StepKind>(found < 0 ? 0 : found);
  const std::string entry = words.Word();
  step.entry = entry == "-" ? "" : entry;
  step.shared_bytes = words.After("shared=");
  plan->steps.push_back(step);
}

// A line that belongs to the last step.
void ParseStepLine(const std::string& word, Words& words, Plan* plan) {
  if (plan->steps.empty()) return words.Fail("'" + word + "' before the first step");
  Step& step = plan->steps.back();
  if (word == "grid") {
    step.grid = ParseCounts(words);
  } else if (word == "block") {
    step.block = ParseCounts(words);
  } else if (word == "cluster") {
    step.cluster = ParseCounts(words);
  } else if (word == "artifact") {
    step.artifact = words.Word();
  } else if (word == "attribute") {
    const std::string name = words.Word();
    step.attributes[name] = words.Integer(words.Word());
  } else if (word == "arg") {
    step.arguments.push_back(ParseArgument(words));
  } else {
    words.Fail("'" + word + "' is not known");
  }
}

void ParseLine(const std::string& word, Words& words, Plan* plan) {
  if (word == "workspace") {
    plan->workspace_bytes = words.Natural(words.Word());
  } else if (word == "persistent") {
    plan->persistent_bytes = words.Natural(words.Word());
  } else if (word == "tensor") {
    TensorNeed need;
    need.alignment = words.After("alignment=");
    need.span_bytes = words.After("span=");
    if (need.alignment < 1) words.Fail("an alignment below 1");
    if (!words.AtEnd()) {
      need.written = true;
      const std::string role = words.Word();
      if (role == "alias") {
        need.alias_of = words.Index();
      } else if (role != "output") {
        words.Fail("'" + role + "' where output or alias belongs");
      }
    }
    plan->tensors.push_back(need);
  } else if (word == "feature") {
    plan->features.push_back(words.Word());
  } else if (word == "need") {
    const std::string name = words.Word();
    plan->needs[name] = words.Integer(words.Word());
  } else if (word == "step") {
    ParseStep(words, plan);
  } else {
    ParseStepLine(word, words, plan);
  }
}

}  // namespace

std::string PrintPlan(const Plan& plan) {
  std::string text = "plan 1\nworkspace " + std::to_string(plan.workspace_bytes) + "\npersistent " +
                     std::to_string(plan.persistent_bytes) + "\n";
  for (const TensorNeed& tensor : plan.tensors) {
    text += "tensor alignment=" + std::to_string(tensor.alignment) +
            " span=" + std::to_string(tensor.span_bytes);
    if (tensor.alias_of >= 0) text += " alias " + std::to_string(tensor.alias_of);
    text += tensor.written && tensor.alias_of < 0 ? " output\n" : "\n";
  }
  for (const std::string& feature : plan.features) text += "feature " + feature + "\n";
  for (const auto& [name, value] : plan.needs)
    text += "need " + name + " " + std::to_string(value) + "\n";
  for (const Step& step : plan.steps) {
    text += std::string("step ") + kStepWords[static_cast<int>(step.kind)] + " " +
            (step.entry.empty() ? "-" : step.entry) +
            " shared=" + std::to_string(step.shared_bytes) + "\n";
    text += PrintCounts("grid", step.grid) + PrintCounts("block", step.block) +
            PrintCounts("cluster", step.cluster);
    for (const auto& [name, value] : step.attributes) {
      text += "attribute " + name + " " + std::to_string(value) + "\n";
    }
    if (!step.artifact.empty()) text += "artifact " + step.artifact + "\n";
    for (const Argument& argument : step.arguments) text += PrintArgument(argument);
  }
  return text;
}

bool ParsePlan(const std::string& text, Plan* plan, std::string* error) {
  *plan = Plan();
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    Words words(line);
    const std::string word = words.Word();
    if (number == 1) {
      const std::string version = words.Word();
      if (word != "plan" || version != "1") words.Fail("not a plan of version 1");
    } else if (words.error().empty()) {
      ParseLine(word, words, plan);
    }
    if (words.error().empty() && !words.AtEnd()) words.Fail("words are left over");
    if (!words.error().empty()) {
      *error = "plan line " + std::to_string(number) + ": " + words.error();
      return false;
    }
  }
  if (text.empty()) *error = "plan line 1: the text is empty";
  return !text.empty();
}

}  // namespace kiln
