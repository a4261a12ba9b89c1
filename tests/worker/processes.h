// SPDX-License-Identifier: Apache-2.0
// What tests of child processes need: a scratch folder, the processes that mention it, and a wait
// with a deadline.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
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
    std::string file = path_ + "/" + name;
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

// Everything in a file, of /proc too; what cannot be read is missing.
inline std::string WholeFile(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char block[4096];
  for (ssize_t got; (got = read(file, block, sizeof block)) > 0;) text.append(block, got);
  close(file);
  return text;  // shorter if the process went away meanwhile
}

// Living processes but this one whose command line or environment mentions `mark`.
inline std::vector<pid_t> ProcessesThatMention(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    for (const char* file : {"/cmdline", "/environ"}) {
      const std::string text = WholeFile(entry.path().string() + file);
      if (text.find(mark) == std::string::npos) continue;
      found.push_back(pid);
      break;
    }
  }
  return found;
}

// In the command line of this program's bench children and of their supervisors.
inline std::string BenchCommand() { return OwnBinary() + std::string(1, '\0') + "--bench-child"; }

// The children alone.
inline std::vector<pid_t> BenchChildren() {
  std::vector<pid_t> found;
  for (const pid_t pid : ProcessesThatMention(BenchCommand())) {
    const std::string line = WholeFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (line.find("--supervise") == std::string::npos) found.push_back(pid);
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
