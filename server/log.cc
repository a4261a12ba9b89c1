// SPDX-License-Identifier: Apache-2.0
#include "server/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace kiln::server {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "kiln-server", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

}  // namespace

void Log(Level level, absl::string_view text) {
  Logger().log(ToSpdlog(level), "{}", fmt::string_view(text.data(), text.size()));
}

void SetLogLevel(Level least) { Logger().set_level(ToSpdlog(least)); }

}  // namespace kiln::server
