// SPDX-License-Identifier: Apache-2.0
// libFuzzer over what arrives on the wire: bytes -> message -> value -> message. No bytes crash the
// conversion; a message that it accepts becomes a value whose message it accepts too and turns into
// the same value, where values compare, and the same bytes; a refusal, as any other status,
// survives the way to a client. The first byte chooses the message.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "google/rpc/status.pb.h"
#include "kiln/v1/types.pb.h"
#include "proto/contract/error.h"
#include "proto/wire.h"

namespace {

using namespace kiln;

template <typename Message>
std::string Bytes(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // maps in the order of their keys
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// A client sees the code, the reason and each detail that a refusal carries.
void CheckRefusal(const absl::Status& status) {
  const absl::Status seen = wire::FromGrpc(wire::ToGrpc(status));
  if (seen.code() != status.code()) std::abort();
  if (GetErrorInfo(seen).reason != GetErrorInfo(status).reason) std::abort();
  if (GetErrorInfo(seen).details.size() < GetErrorInfo(status).details.size()) std::abort();
}

// `fallback`: what FromWire takes beside the message.
template <typename Message, typename... Fallback>
void Check(const std::string& bytes, const Fallback&... fallback) {
  Message message;
  if (!message.ParseFromString(bytes)) return;
  const auto value = wire::FromWire(message, fallback...);
  if (!value.ok()) return CheckRefusal(value.status());
  Message first, read, second;
  wire::ToWire(*value, &first);
  if (!read.ParseFromString(Bytes(first))) std::abort();
  const auto again = wire::FromWire(read, fallback...);
  if (!again.ok()) std::abort();
  // What each way loses alike would not show in the bytes.
  if constexpr (requires { *value == *again; }) {
    if (!(*value == *again)) std::abort();
  }
  wire::ToWire(*again, &second);
  if (Bytes(first) != Bytes(second)) std::abort();
}

void CheckStatus(const std::string& bytes) {
  google::rpc::Status message, again;
  if (message.ParseFromString(bytes)) {
    const absl::Status status = wire::FromWire(message);
    wire::ToWire(status, &again);
    if (wire::FromWire(again).code() != status.code()) std::abort();
    if (wire::FromGrpc(wire::ToGrpc(status)).code() != status.code()) std::abort();
  }
  // As details that some other server attached.
  const grpc::Status foreign(grpc::StatusCode::UNAVAILABLE, "gone", bytes);
  if (wire::FromGrpc(foreign).code() != absl::StatusCode::kUnavailable) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // What protobuf itself complains of (strings that are no UTF-8) is no finding.
  static const google::protobuf::LogSilencer* const silent = new google::protobuf::LogSilencer;
  if (size == 0 || silent == nullptr) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 12) {
    case 0:
      Check<v1::Record>(bytes);
      break;
    case 1:
      Check<v1::Job>(bytes);
      break;
    case 2:
      Check<v1::WorkloadSpec>(bytes);
      break;
    case 3:
      Check<v1::Device>(bytes);
      break;
    case 4:
      Check<v1::Plan>(bytes);
      break;
    case 5:
      Check<v1::Outcome>(bytes);
      break;
    case 6:
      Check<v1::Measurement>(bytes);
      break;
    case 7:
      Check<v1::Progress>(bytes);
      break;
    case 8:
      Check<v1::Budget>(bytes, Budget{});
      break;
    case 9:
      Check<v1::Objective>(bytes, Objective{});
      break;
    case 10:
      Check<v1::Schedule>(bytes);
      break;
    case 11:
      CheckStatus(bytes);
      break;
  }
  return 0;
}
