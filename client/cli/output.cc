// SPDX-License-Identifier: Apache-2.0
#include "client/cli/output.h"

#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

std::string Dump(const Json& object) {
  // A message may quote bytes of a program that are no text.
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

void PrintLine(std::FILE* file, const std::string& text) {
  std::fputs(text.c_str(), file);
  if (text.empty() || text.back() != '\n') std::fputc('\n', file);
  std::fflush(file);
}

std::string ReasonOf(const absl::Status& status) {
  const std::string reason = GetErrorInfo(status).reason;
  return reason.empty() ? absl::StatusCodeToString(status.code()) : reason;
}

}  // namespace

void Output::Print(const Json& object, const std::string& text) {
  PrintLine(out_, json_ ? Dump(object) : text);
}

void Output::Note(const std::string& text) { PrintLine(err_, text); }

void Output::Error(const absl::Status& status) {
  PrintLine(err_, "kiln: " + ReasonOf(status) + ": " + std::string(status.message()));
  if (json_) PrintLine(out_, Dump({{"error", ErrorJson(status)}}));
}

Json ErrorJson(const absl::Status& status) {
  Json details = Json::object();
  for (const auto& [name, value] : GetErrorInfo(status).details) details[name] = value;
  return {{"code", absl::StatusCodeToString(status.code())},
          {"reason", ReasonOf(status)},
          {"message", std::string(status.message())},
          {"details", details}};
}

}  // namespace kiln::cli
