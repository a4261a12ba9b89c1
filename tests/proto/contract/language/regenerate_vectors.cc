// SPDX-License-Identifier: Apache-2.0
// Writes canonical texts and signatures of proto/contract/vectors.json anew, in place:
// regenerate_vectors FILE. For new vectors, and after a deliberate change of the canonical form,
// which also raises the "kiln/1" that is hashed.
#include <iostream>

#include "tests/proto/contract/language/vector_file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: regenerate_vectors FILE\n";
    return 2;
  }
  nlohmann::ordered_json file = kiln::language::ReadVectors(argv[1]);
  for (auto& vector : file["vectors"]) {
    auto workload = kiln::CheckWorkload(kiln::language::SpecOf(vector));
    if (!workload.ok()) {
      std::cerr << vector["name"] << ": " << std::string(workload.status().message()) << "\n";
      return 1;
    }
    vector["canonical"] = workload->canonical;
    vector["signature"] = workload->signature;
  }
  std::string all;
  for (int n = 0; n < 1000; ++n) {
    kiln::WorkloadSpec spec;
    spec.program = file["vectors"][0]["program"];
    spec.dims = {{"M", {n, n}}, {"N", {n / 2, n}}, {"K", {3 * n, 3 * n + n % 3}}};
    all += kiln::CheckWorkload(spec).value().signature;
  }
  file["thousand"] = kiln::Sha256Hex(all);
  std::ofstream(argv[1]) << file.dump(1) << "\n";
  return 0;
}
