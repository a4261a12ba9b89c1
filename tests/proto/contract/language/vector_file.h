// SPDX-License-Identifier: Apache-2.0
// Reading proto/contract/vectors.json: for the test that compares and the program that writes it
// anew.
#pragma once

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "proto/contract/workload.h"

namespace kiln::language {

inline nlohmann::ordered_json ReadVectors(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::ordered_json::parse(file);
}

// A vector's fields are spelled as on the command line; those left out are empty.
template <typename Json>
WorkloadSpec SpecOf(const Json& vector) {
  auto text = [&vector](const char* field) {
    return vector.contains(field) ? vector[field].template get<std::string>() : std::string();
  };
  WorkloadSpec spec;
  spec.program = text("program");
  spec.dims = ParseDims(text("dims")).value();
  spec.types = ParseTypes(text("types")).value();
  spec.strides = ParseStrides(text("strides")).value();
  spec.alignment = ParseAlignment(text("alignment")).value();
  spec.alias = ParseAlias(text("alias")).value();
  spec.policy = ParsePolicy(text("policy")).value();
  return spec;
}

}  // namespace kiln::language
