// SPDX-License-Identifier: Apache-2.0
#include "server/selection.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/str_cat.h"
#include "kiln/v1/kiln.pb.h"
#include "proto/wire.h"
#include "server/answers_version.h"

namespace kiln::server {
namespace {

// The same bytes for the same spec: maps come in any order otherwise.
std::string Identity(const v1::WorkloadSpec& spec) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  spec.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace

std::string QuestionText(const v1::WorkloadSpec& spec, absl::string_view device_id,
                         const Objective& objective, int64_t salt) {
  return absl::StrCat(kAnswersVersion, "\n", device_id, "\n", Print(objective), "\n", salt, "\n",
                      Identity(spec));
}

absl::StatusOr<Spelling> Spell(const v1::Selection& selection, Lookup* lookup) {
  KILN_ASSIGN_OR_RETURN(const std::shared_ptr<const Lookup::Known> known,
                        lookup->Resolve(selection.device()));
  KILN_ASSIGN_OR_RETURN(
      const Objective objective,
      wire::FromWire(selection.objective(), wire::DefaultObjective(known->device.kind),
                     "selection.objective"));
  return Spelling{QuestionText(selection.workload(), known->id, objective, lookup->salt()),
                  known->id};
}

absl::StatusOr<Question> Understand(const v1::Selection& selection, Lookup* lookup) {
  Question question;
  KILN_ASSIGN_OR_RETURN(const WorkloadSpec spec,
                        wire::FromWire(selection.workload(), "selection.workload"));
  KILN_ASSIGN_OR_RETURN(question.workload, lookup->Check(spec, Identity(selection.workload())));
  if (!selection.signature().empty() && selection.signature() != question.workload->signature) {
    return InvalidField("SIGNATURE_MISMATCH", "selection.signature", selection.signature(),
                        "not the signature of the workload", question.workload->signature);
  }
  KILN_ASSIGN_OR_RETURN(const std::shared_ptr<const Lookup::Known> known,
                        lookup->Resolve(selection.device()));
  question.device = known->device;
  KILN_ASSIGN_OR_RETURN(
      const Objective objective,
      wire::FromWire(selection.objective(), wire::DefaultObjective(known->device.kind),
                     "selection.objective"));
  question.key = lookup->KeyOf(*question.workload, known->id, objective);
  return question;
}

}  // namespace kiln::server
