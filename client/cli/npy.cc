// SPDX-License-Identifier: Apache-2.0
#include "client/cli/npy.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <regex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/whole_file.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kMaxHeaderBytes = 1 << 16;
constexpr int64_t kMaxElements = int64_t{1} << 48;

absl::Status Malformed(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("no .npy file that can be read: ", what), {"INVALID_NPY", {}});
}

std::string ShapeWords(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// The element's size, of the types that tensors can have; 0 for any other.
int64_t ElementBytes(const std::string& descr) {
  static const char* const kKnown[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "b1"};
  if (descr.size() != 3 || strchr("<|=", descr[0]) == nullptr) return 0;
  for (const char* known : kKnown) {
    if (descr.compare(1, 2, known) == 0) return descr[2] - '0';
  }
  return 0;
}

absl::Status ParseHeader(const std::string& header, NpyArray* array) {
  std::smatch match;
  static const std::regex kDescr(R"('descr'\s*:\s*'([^']*)')"),
      kOrder(R"('fortran_order'\s*:\s*(True|False))"), kShape(R"('shape'\s*:\s*\(([0-9,\sL]*)\))");
  if (!std::regex_search(header, match, kDescr)) return Malformed("its header has no 'descr'");
  array->descr = match[1];
  if (ElementBytes(array->descr) == 0) {
    return Malformed(absl::StrCat("elements of type '", array->descr,
                                  "'; allowed: little-endian f2 f4 f8 i1 i2 i4 i8 u1 u2 b1"));
  }
  if (!std::regex_search(header, match, kOrder))
    return Malformed("its header has no 'fortran_order'");
  if (match[1] == "True")
    return Malformed("it is in Fortran order; save it with numpy.ascontiguousarray");
  if (!std::regex_search(header, match, kShape)) return Malformed("its header has no 'shape'");
  int64_t elements = 1;
  for (const absl::string_view part :
       absl::StrSplit(std::string(match[1]), absl::ByAnyChar(", L"), absl::SkipEmpty())) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0 ||
        __builtin_mul_overflow(elements, extent, &elements) || elements > kMaxElements) {
      return Malformed(absl::StrCat("shape (", std::string(match[1]), ")"));
    }
    array->shape.push_back(extent);
  }
  return absl::OkStatus();
}

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

// Calls visit(element's place in C order, its offset in the tensor) for every element.
template <typename Visit>
void ForEachElement(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                    Visit visit) {
  const int64_t elements = Elements(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < elements; ++i) {
    visit(i, offset);
    for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

bool IsNibble(DType type) { return type == DType::kI4 || type == DType::kU4; }

}  // namespace

std::string NpyDescr(DType type) {
  switch (type) {
    case DType::kF64:
      return "<f8";
    case DType::kF32:
      return "<f4";
    case DType::kF16:
      return "<f2";
    case DType::kBf16:
      return "<u2";
    case DType::kI64:
      return "<i8";
    case DType::kI32:
      return "<i4";
    case DType::kI16:
      return "<i2";
    case DType::kI8:
    case DType::kI4:
      return "|i1";
    case DType::kE4m3:
    case DType::kE5m2:
    case DType::kU8:
    case DType::kU4:
      return "|u1";
    case DType::kBool:
      return "|b1";
  }
  return "";
}

absl::StatusOr<NpyArray> ParseNpy(const std::string& file) {
  if (file.size() < 10 || file.compare(0, kMagicBytes, kMagic, kMagicBytes) != 0)
    return Malformed("it does not begin as one");
  const int version = static_cast<unsigned char>(file[6]);
  if (version < 1 || version > 3)
    return Malformed(absl::StrCat("version ", version, "; allowed: 1 to 3"));
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t length = 0;
  if (file.size() < 8 + length_bytes) return Malformed("it is cut short");
  for (size_t i = 0; i < length_bytes; ++i)
    length |= size_t{static_cast<unsigned char>(file[8 + i])} << (8 * i);
  const size_t start = 8 + length_bytes + length;
  if (length > kMaxHeaderBytes || file.size() < start) return Malformed("its header is cut short");
  NpyArray array;
  KILN_RETURN_IF_ERROR(ParseHeader(file.substr(8 + length_bytes, length), &array));
  const int64_t bytes = Elements(array.shape) * ElementBytes(array.descr);
  if (static_cast<int64_t>(file.size() - start) != bytes) {
    return Malformed(absl::StrCat(file.size() - start, " bytes of data for shape ",
                                  ShapeWords(array.shape), "; needed: ", bytes));
  }
  array.bytes = file.substr(start);
  return array;
}

std::string PrintNpy(const NpyArray& array) {
  std::string header =
      absl::StrCat("{'descr': '", array.descr, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(array.shape, ", "), array.shape.size() == 1 ? ",), }" : "), }");
  // The data begins at a multiple of 64 bytes, behind a newline.
  header.append(63 - (kMagicBytes + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::string file(kMagic, kMagicBytes);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + array.bytes;
}

// A stride of 0 keeps many elements in one place: they have to be equal, or something else comes
// back than was given.
absl::Status CheckRepeats(const NpyArray& array, const compiler::HostTensor& tensor) {
  const std::string kept = ToNpy(tensor).bytes;
  if (kept == array.bytes) return absl::OkStatus();
  const auto differs = std::mismatch(kept.begin(), kept.end(), array.bytes.begin()).first;
  const int64_t element = (differs - kept.begin()) / ElementBytes(array.descr);
  return InvalidField("VALUES_DIFFER", absl::StrCat("element ", element),
                      "another value than a later one",
                      "in the same place, which a stride of 0 repeats",
                      "the same value wherever the tensor repeats itself");
}

absl::Status FillTensor(const NpyArray& array, compiler::HostTensor* tensor) {
  if (array.shape != tensor->shape) {
    return InvalidField("SHAPE_MISMATCH", "shape", ShapeWords(array.shape), "not the tensor's",
                        ShapeWords(tensor->shape));
  }
  const std::string wanted = NpyDescr(tensor->type);
  if (array.descr.compare(1, 2, wanted, 1, 2) != 0) {
    return InvalidField("TYPE_MISMATCH", "type", array.descr, "not the tensor's",
                        absl::StrCat(wanted, " for ", Print(tensor->type)));
  }
  if (IsNibble(tensor->type)) {
    const compiler::IntegerLimits limits = compiler::LimitsOf(tensor->type);
    int64_t bad = -1;
    ForEachElement(tensor->shape, tensor->strides, [&](int64_t i, int64_t offset) {
      const int64_t value = tensor->type == DType::kI4 ? static_cast<signed char>(array.bytes[i])
                                                       : static_cast<unsigned char>(array.bytes[i]);
      if (value < limits.least || value > limits.greatest) bad = i;
      compiler::StoreInteger(*tensor, offset, value);
    });
    if (bad < 0) return CheckRepeats(array, *tensor);
    return InvalidField("VALUE_OUT_OF_RANGE", absl::StrCat("element ", bad),
                        absl::StrCat(static_cast<int>(array.bytes[bad])),
                        absl::StrCat("no ", Print(tensor->type)),
                        absl::StrCat(limits.least, " to ", limits.greatest));
  }
  const int64_t size = Bits(tensor->type) / 8;
  ForEachElement(tensor->shape, tensor->strides, [&](int64_t i, int64_t offset) {
    std::memcpy(tensor->bytes.data() + offset * size, array.bytes.data() + i * size, size);
  });
  return CheckRepeats(array, *tensor);
}

NpyArray ToNpy(const compiler::HostTensor& tensor) {
  NpyArray array{NpyDescr(tensor.type), tensor.shape, {}};
  const bool nibble = IsNibble(tensor.type);
  const int64_t size = nibble ? 1 : Bits(tensor.type) / 8;
  array.bytes.resize(Elements(tensor.shape) * size);
  ForEachElement(tensor.shape, tensor.strides, [&](int64_t i, int64_t offset) {
    if (nibble) {
      array.bytes[i] = static_cast<char>(compiler::LoadAsInteger(tensor, offset));
    } else {
      std::memcpy(array.bytes.data() + i * size, tensor.bytes.data() + offset * size, size);
    }
  });
  return array;
}

absl::Status LoadTensor(const std::string& path, compiler::HostTensor* tensor) {
  // Far more than it needs, so that a file of another shape is told so.
  const int64_t limit = Elements(tensor->shape) * 8 + (int64_t{1} << 30);
  KILN_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadWholeFile("file", path, "a readable .npy file", limit));
  const absl::StatusOr<NpyArray> array = ParseNpy(bytes);
  if (!array.ok()) return Annotate(array.status(), path);
  const absl::Status filled = FillTensor(*array, tensor);
  return filled.ok() ? filled : Annotate(filled, path);
}

absl::Status SaveTensor(const std::string& path, const compiler::HostTensor& tensor) {
  const std::string bytes = PrintNpy(ToNpy(tensor));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file.good()) return absl::OkStatus();
  return InvalidField("CANNOT_WRITE", "file", path, "no file that can be written",
                      "a writable path");
}

}  // namespace kiln::cli
