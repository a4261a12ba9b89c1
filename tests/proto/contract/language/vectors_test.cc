// SPDX-License-Identifier: Apache-2.0
// The published test vectors (proto/contract/vectors.json): golden keys, the same on every platform
// and from every compiler (field case C43). regenerate_vectors writes them anew after a deliberate
// change of the canonical form.
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "tests/proto/contract/language/vector_file.h"

namespace kiln::language {
namespace {

class Vectors : public testing::Test {
 protected:
  Vectors() : file_(ReadVectors("proto/contract/vectors.json")) {}
  nlohmann::ordered_json file_;
};

TEST_F(Vectors, AreWhatTheLanguageGives) {
  ASSERT_GE(file_["vectors"].size(), 30);
  for (const auto& vector : file_["vectors"]) {
    auto workload = CheckWorkload(SpecOf(vector));
    ASSERT_TRUE(workload.ok()) << vector["name"] << workload.status().message();
    EXPECT_EQ(workload->canonical, vector["canonical"].get<std::string>()) << vector["name"];
    EXPECT_EQ(workload->signature, vector["signature"].get<std::string>()) << vector["name"];
  }
}

TEST_F(Vectors, AgreeWithinAMeaningAndDifferBetween) {
  std::map<std::string, std::string> signature_of;
  std::set<std::string> names;
  for (const auto& vector : file_["vectors"]) {
    EXPECT_TRUE(names.insert(vector["name"]).second) << vector["name"];
    auto [it, added] = signature_of.try_emplace(vector["meaning"], vector["signature"]);
    EXPECT_EQ(it->second, vector["signature"].get<std::string>()) << vector["name"];
  }
  std::set<std::string> signatures;
  for (const auto& [meaning, signature] : signature_of)
    EXPECT_TRUE(signatures.insert(signature).second) << meaning;
  EXPECT_GE(signatures.size(), 20);
}

// C43 asks for a thousand: the signatures of 1000 shapes, as one digest.
TEST_F(Vectors, OfAThousandShapesHaveOneDigest) {
  std::string all;
  for (int n = 0; n < 1000; ++n) {
    WorkloadSpec spec;
    spec.program = file_["vectors"][0]["program"];
    spec.dims = {{"M", {n, n}}, {"N", {n / 2, n}}, {"K", {3 * n, 3 * n + n % 3}}};
    auto workload = CheckWorkload(spec);
    ASSERT_TRUE(workload.ok());
    all += workload->signature;
  }
  EXPECT_EQ(Sha256Hex(all), file_["thousand"].get<std::string>());
}

}  // namespace
}  // namespace kiln::language
