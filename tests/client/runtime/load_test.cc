// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/module.h"
#include "tests/client/runtime/plan_fixture.h"

namespace kiln::runtime {
namespace {

TEST(Load, TellsWhatThePlanNeeds) {
  Plan plan = ScalePlan(10, 2);
  plan.tensors[1].alignment = 64;
  const PlanPtr loaded = MustLoad(plan);
  EXPECT_EQ(kiln_plan_tensors(loaded.get()), 2);
  EXPECT_EQ(kiln_plan_alignment(loaded.get(), 1), 64);
  EXPECT_EQ(kiln_plan_span_bytes(loaded.get(), 0), 40);
  EXPECT_EQ(kiln_plan_span_bytes(loaded.get(), 2), 0);
  EXPECT_EQ(kiln_plan_workspace_bytes(loaded.get()), 0);
}

TEST(Load, RefusesTextThatIsNoPlan) {
  PlanPtr loaded;
  EXPECT_EQ(TryLoad("this is no plan", &loaded), KILN_INVALID_PLAN);
  EXPECT_NE(std::string(kiln_error()), "");
  EXPECT_EQ(kiln_plan_load(nullptr, 0, KernelSource, nullptr, nullptr), KILN_BAD_ARGUMENT);
  std::string text = PrintPlan(ScalePlan(10, 2));
  for (size_t cut = 0; cut < text.size(); ++cut) {
    const kiln_code code =
        TryLoad(text.substr(0, cut), &loaded);  // whatever it says, it does not crash
    EXPECT_EQ(code == KILN_OK, loaded != nullptr);
  }
}

TEST(Load, RefusesAnArtifactThatIsMissingOrHasAnotherDigest) {
  Plan plan = ScalePlan(10, 2);
  plan.steps[0].artifact = std::string(64, '0');
  ExpectLoadFails(plan, KILN_BAD_ARTIFACT, "is not to be had");

  plan = ScalePlan(10, 2);
  const std::string text = PrintPlan(plan);
  kiln_plan* loaded = nullptr;
  std::string tampered = KernelBytes();
  tampered[tampered.size() / 2] ^= 1;
  const auto source = [](void* context, const char*, const void** bytes, size_t* size) {
    const std::string& artifact = *static_cast<std::string*>(context);
    *bytes = artifact.data();
    *size = artifact.size();
    return 0;
  };
  EXPECT_EQ(kiln_plan_load(text.data(), text.size(), source, &tampered, &loaded),
            KILN_BAD_ARTIFACT);
  EXPECT_NE(std::string(kiln_error()).find("have the digest"), std::string::npos) << kiln_error();
  EXPECT_EQ(loaded, nullptr);
}

// Bytes with the right digest that are no code for this machine.
TEST(Load, RefusesBytesThatAreNoSharedObject) {
  struct Case {
    std::string bytes;
    kiln_code code;
  };
  std::string cubin = KernelBytes(), foreign = KernelBytes(), cut = KernelBytes().substr(0, 200);
  cubin[18] = static_cast<char>(190), cubin[19] = 0;
  foreign[18] = 8, foreign[19] = 0;  // MIPS
  for (const Case& c : {Case{"", KILN_BAD_ARTIFACT}, Case{"int main() {}", KILN_BAD_ARTIFACT},
                        Case{cubin, KILN_UNSUPPORTED}, Case{foreign, KILN_BAD_ARTIFACT},
                        Case{cut, KILN_BAD_ARTIFACT}}) {
    Plan plan = ScalePlan(10, 2);
    plan.steps[0].artifact = Sha256Hex(c.bytes.data(), c.bytes.size());
    const std::string text = PrintPlan(plan);
    kiln_plan* loaded = nullptr;
    const auto source = [](void* context, const char*, const void** bytes, size_t* size) {
      const std::string& artifact = *static_cast<const std::string*>(context);
      *bytes = artifact.data();
      *size = artifact.size();
      return 0;
    };
    std::string bytes = c.bytes;
    EXPECT_EQ(kiln_plan_load(text.data(), text.size(), source, &bytes, &loaded), c.code)
        << kiln_error();
    EXPECT_EQ(loaded, nullptr);
  }
}

TEST(Load, RefusesAnEntryThatTheArtifactLacks) {
  Plan plan = ScalePlan(10, 2);
  plan.steps[0].entry = "unknown_entry";
  ExpectLoadFails(plan, KILN_BAD_ARTIFACT, "has no entry unknown_entry");
}

TEST(Load, RefusesWhatThisMachineLacks) {
  Plan plan = ScalePlan(10, 2);
  plan.features = {"quantum"};
  ExpectLoadFails(plan, KILN_UNSUPPORTED, "CPU feature quantum");

  plan = ScalePlan(10, 2);
  plan.needs["driver"] = 580;
  ExpectLoadFails(plan, KILN_UNSUPPORTED, "driver 580");

  plan = ScalePlan(10, 2);
  plan.steps[0].block[0].value = 128;
  ExpectLoadFails(plan, KILN_UNSUPPORTED, "GPU");

  plan = ScalePlan(10, 2);
  plan.steps[0].shared_bytes = int64_t{1} << 40;
  ExpectLoadFails(plan, KILN_UNSUPPORTED, "scratch of");

  plan = ScalePlan(10, 2);
  plan.steps[0].kind = StepKind::kLibrary;
  plan.steps[0].entry = "cublas:gemm";
  ExpectLoadFails(plan, KILN_UNSUPPORTED, "cublas:gemm");
}

TEST(Load, RefusesArgumentsThatPointOutsideThePlan) {
  Plan plan = ScalePlan(10, 2);
  plan.steps[0].arguments[0].index = 2;
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "argument 0");

  plan = ScalePlan(10, 2);
  plan.steps[0].arguments[1] = TensorArgument(1, 41);
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "argument 1");

  plan = ScalePlan(10, 2);
  plan.workspace_bytes = 10;
  plan.steps[0].arguments[1] = WorkspaceArgument(11);
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "argument 1");

  plan = ScalePlan(10, 2);
  plan.workspace_bytes = 64;
  plan.steps[0].kind = StepKind::kPrepack;
  plan.steps[0].arguments[1] = WorkspaceArgument(0);
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "prepack");

  plan = ScalePlan(10, 2);
  plan.steps[0].kind = StepKind::kFill;
  plan.steps[0].arguments = {TensorArgument(0, 8)};
  plan.steps[0].attributes["bytes"] = 33;
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "fill of 33 bytes");

  plan = ScalePlan(10, 2);
  plan.steps[0].arguments.assign(1000, IntegerArgument(1));
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "1000 arguments");
}

TEST(Load, RefusesAliasesOfNothing) {
  for (int alias : {1, 2}) {  // itself, and one that there is not
    Plan plan = ScalePlan(10, 2);
    plan.tensors[1].written = true;
    plan.tensors[1].alias_of = alias;
    ExpectLoadFails(plan, KILN_INVALID_PLAN, "tensor 1: aliases tensor");
  }
}

TEST(Load, PersistentMemoryThatCannotBeHadIsRefused) {
  Plan plan = ScalePlan(10, 2);
  plan.persistent_bytes = int64_t{1} << 60;
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "persistent memory");
}

// The loader knows a library by its path, and paths of memory files are made of a number that is
// soon used again.
TEST(Load, GivesEachArtifactItsOwnCode) {
  const std::string other_bytes = KernelBytes() + "x";  // another digest, the same entries
  Module first, second;
  ASSERT_EQ(first.Load(KernelDigest(), KernelBytes().data(), KernelBytes().size()), KILN_OK)
      << kiln_error();
  ASSERT_EQ(second.Load(Sha256Hex(other_bytes.data(), other_bytes.size()), other_bytes.data(),
                        other_bytes.size()),
            KILN_OK)
      << kiln_error();
  ASSERT_NE(first.FindEntry("scale"), nullptr);
  EXPECT_NE(first.FindEntry("scale"), second.FindEntry("scale"));
}

}  // namespace
}  // namespace kiln::runtime
