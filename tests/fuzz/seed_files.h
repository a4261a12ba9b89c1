// SPDX-License-Identifier: Apache-2.0
// What each *_seeds program is: it writes the inputs that a fuzz target starts from as files of one
// folder, which must exist.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

namespace kiln {

class SeedFiles {
 public:
  // Ends the program if its one argument is missing.
  SeedFiles(int argc, char** argv) {
    if (argc != 2) {
      std::cerr << "usage: " << argv[0] << " FOLDER\n";
      std::exit(2);
    }
    folder_ = argv[1];
  }

  void Write(const std::string& bytes) {
    std::ofstream file(folder_ + "/seed" + std::to_string(count_++), std::ios::binary);
    file << bytes;
    file.close();
    if (!file) {
      std::cerr << folder_ << ": cannot be written to\n";
      std::exit(1);
    }
  }

 private:
  std::string folder_;
  int count_ = 0;
};

}  // namespace kiln
