// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seed_files.h"
#include "tests/proto/contract/language/seeds.h"

int main(int argc, char** argv) {
  kiln::SeedFiles files(argc, argv);
  for (const char* seed : kiln::language::kSeeds) {
    for (const uint32_t choice : {0u, 3u, 0x25bu, 0x6a1u}) {
      files.Write(std::string(reinterpret_cast<const char*>(&choice), sizeof choice) + seed);
    }
  }
}
