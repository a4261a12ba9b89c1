// SPDX-License-Identifier: Apache-2.0
// Compiles the references of several workloads as one source and loads them; for tests.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/reference.h"
#include "worker/verify/references.h"

namespace kiln::verify {

// One entry per workload, in order; empty if the compiler failed (its output is on stderr). The
// library stays loaded.
inline std::vector<Reference> CompileReferences(const std::vector<Workload>& workloads) {
  std::string includes, bodies;
  for (size_t i = 0; i < workloads.size(); ++i) {
    auto source = compiler::EmitReference(workloads[i]);
    if (!source.ok()) return {};
    std::istringstream lines(*source);
    absl::StrAppend(&bodies, "namespace program", i, " {\n");
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#include", 0) == 0) {
        if (i == 0) absl::StrAppend(&includes, line, "\n");
        continue;
      }
      const size_t entry = line.find("int kiln_reference(");
      if (entry != std::string::npos) line.insert(entry + 18, absl::StrCat("_", i));
      absl::StrAppend(&bodies, line, "\n");
    }
    absl::StrAppend(&bodies, "}\n");
  }
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {};
  const std::string source = folder + "/reference.cc", library = folder + "/reference.so";
  std::ofstream(source) << includes << bodies;
  const std::string command = absl::StrCat(
      "c++ -std=c++17 -O2 -Wall -Wno-unused-function -Wno-unused-variable "
      "-Wno-unused-but-set-variable -fPIC "
      "-shared -pthread -o ",
      library, " ", source);
  std::vector<Reference> references;
  if (std::system(command.c_str()) == 0) {
    if (void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      using Entry = int (*)(const void* const*, double* const*, double* const*, int);
      for (size_t i = 0; i < workloads.size(); ++i) {
        references.push_back(
            reinterpret_cast<Entry>(dlsym(loaded, absl::StrCat("kiln_reference_", i).c_str())));
      }
    }
  }
  std::filesystem::remove_all(folder);
  return references;
}

}  // namespace kiln::verify
