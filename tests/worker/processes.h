// SPDX-License-Identifier: Apache-2.0
// What tests of child processes need: a scratch folder, the processes that mention it, and a wait
// with a deadline.
#pragma once

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::worker {

// This very program, which answers to --supervise (supervised_main.cc).
inline std::string OwnBinary() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text,
                    bool executable = false) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file) << text;
    if (executable) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  // Everything in it, folders too.
  int Entries() const {
    int count = 0;
    std::error_code ignored;
    for (auto it = std::filesystem::recursive_directory_iterator(path_, ignored);
         it != std::filesystem::recursive_directory_iterator(); it.increment(ignored)) {
      ++count;
    }
    return count;
  }

 private:
  std::string path_;
};

// Living processes but this one whose command line or environment mentions `mark`.
inline std::vector<pid_t> ProcessesThatMention(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    for (const char* file : {"/cmdline", "/environ"}) {
      std::ifstream in(entry.path().string() + file, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(in)),
                             std::istreambuf_iterator<char>());
      if (text.find(mark) == std::string::npos) continue;
      found.push_back(pid);
      break;
    }
  }
  return found;
}

inline bool Eventually(const std::function<bool()>& holds,
                       absl::Duration limit = absl::Seconds(5)) {
  const absl::Time deadline = absl::Now() + limit;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    usleep(10000);
  }
  return true;
}

}  // namespace kiln::worker
