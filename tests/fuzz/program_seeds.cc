// SPDX-License-Identifier: Apache-2.0
// Writes the seed programs as corpus files for program_fuzz: write_seeds DIRECTORY.
#include <fstream>
#include <iostream>

#include "tests/proto/contract/language/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_seeds DIRECTORY\n";
    return 2;
  }
  int number = 0;
  for (const char* seed : kiln::language::kSeeds) {
    for (uint32_t choice : {0u, 3u, 0x25bu, 0x6a1u}) {
      std::ofstream file(std::string(argv[1]) + "/seed" + std::to_string(number++),
                         std::ios::binary);
      file.write(reinterpret_cast<const char*>(&choice), sizeof choice);
      file << seed;
    }
  }
  return 0;
}
