// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/host_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::compiler {
namespace {

// A binary float format of 8 or 16 bits: sign, exponent, mantissa.
struct Format {
  int mantissa_bits;  // stored ones
  int bias;
  int exponent_bits;
  bool finite;  // e4m3: no infinities, one NaN per sign, overflow saturates
};

constexpr Format kF16{10, 15, 5, false};
constexpr Format kBf16{7, 127, 8, false};
constexpr Format kE4m3{3, 7, 4, true};
constexpr Format kE5m2{2, 15, 5, false};

const Format& FormatOf(DType type) {
  switch (type) {
    case DType::kF16:
      return kF16;
    case DType::kBf16:
      return kBf16;
    case DType::kE4m3:
      return kE4m3;
    default:
      return kE5m2;
  }
}

double Decode(const Format& format, uint32_t bits) {
  const uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t mantissa = bits & mantissa_mask;
  const uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const bool negative = (bits >> (format.mantissa_bits + format.exponent_bits)) & 1;
  double magnitude;
  if (format.finite && exponent == exponent_mask && mantissa == mantissa_mask) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (!format.finite && exponent == exponent_mask) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa + mantissa_mask + 1,
                           static_cast<int>(exponent) - format.bias - format.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

uint32_t Encode(const Format& format, double value) {
  const uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t sign =
      std::signbit(value) ? 1u << (format.mantissa_bits + format.exponent_bits) : 0;
  const uint32_t top = exponent_mask << format.mantissa_bits;  // infinity, where there is one
  if (std::isnan(value)) {
    return sign | top | (format.finite ? mantissa_mask : 1u << (format.mantissa_bits - 1));
  }
  const uint32_t overflow = format.finite ? top + mantissa_mask - 1 : top;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | overflow;
  if (magnitude == 0) return sign;
  const int least = 1 - format.bias;  // exponent of the least normal
  int exponent = std::ilogb(magnitude);
  if (exponent < least) exponent = least;
  // In units of the last place: rounded half to even, as the default rounding mode has it.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  // A carry out of the mantissa runs into the exponent, which is what rounding up means.
  const double code = units + std::ldexp(exponent - least, format.mantissa_bits);
  return sign | (code >= overflow ? overflow : static_cast<uint32_t>(code));
}

int64_t Saturate(double value, int64_t least, int64_t greatest) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  if (value <= static_cast<double>(least)) return least;
  if (value >= static_cast<double>(greatest)) return greatest;
  return static_cast<int64_t>(value);
}

// A double that rounds to any narrower type as the integer does: the bits that it cannot hold are
// folded into its last.
double StickyDouble(int64_t value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : value;
  if (magnitude <= uint64_t{1} << 53) return static_cast<double>(value);
  const uint64_t folded = (magnitude >> 11) | ((magnitude & 0x7FF) != 0);
  const double result = std::ldexp(static_cast<double>(folded), 11);
  return value < 0 ? -result : result;
}

template <typename T>
T LoadBytes(const HostTensor& tensor, int64_t offset) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void StoreBytes(HostTensor& tensor, int64_t offset, T value) {
  std::memcpy(tensor.bytes.data() + offset * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

uint32_t LoadCode(const HostTensor& tensor, int64_t offset) {
  return Bits(tensor.type) == 16 ? LoadBytes<uint16_t>(tensor, offset)
                                 : LoadBytes<uint8_t>(tensor, offset);
}

}  // namespace

int64_t HostTensor::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

IntegerLimits LimitsOf(DType type) {
  if (type == DType::kBool) return {0, 1};
  if (type == DType::kI64) {
    return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
  const int bits = Bits(type);
  if (type == DType::kU8 || type == DType::kU4) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

int64_t TruncateTo(DType type, double value) {
  if (type == DType::kBool) return value != 0;
  const IntegerLimits limits = LimitsOf(type);
  return Saturate(value, limits.least, limits.greatest);
}

int64_t WrapTo(DType type, int64_t value) {
  if (type == DType::kBool) return value != 0;
  if (type == DType::kI64) return value;
  const int unused = 64 - Bits(type);
  const uint64_t raised = static_cast<uint64_t>(value) << unused;
  if (type == DType::kU8 || type == DType::kU4) return static_cast<int64_t>(raised >> unused);
  return static_cast<int64_t>(raised) >> unused;
}

double LoadAsDouble(const HostTensor& tensor, int64_t offset) {
  if (!IsFloat(tensor.type)) return static_cast<double>(LoadAsInteger(tensor, offset));
  if (tensor.type == DType::kF64) return LoadBytes<double>(tensor, offset);
  if (tensor.type == DType::kF32) return LoadBytes<float>(tensor, offset);
  return Decode(FormatOf(tensor.type), LoadCode(tensor, offset));
}

int64_t LoadAsInteger(const HostTensor& tensor, int64_t offset) {
  switch (tensor.type) {
    case DType::kI64:
      return LoadBytes<int64_t>(tensor, offset);
    case DType::kI32:
      return LoadBytes<int32_t>(tensor, offset);
    case DType::kI16:
      return LoadBytes<int16_t>(tensor, offset);
    case DType::kI8:
      return LoadBytes<int8_t>(tensor, offset);
    case DType::kU8:
      return LoadBytes<uint8_t>(tensor, offset);
    case DType::kBool:
      return LoadBytes<uint8_t>(tensor, offset) != 0;
    case DType::kI4:
    case DType::kU4:
      return WrapTo(tensor.type, tensor.bytes[offset / 2] >> (offset % 2 * 4));
    default:
      return TruncateTo(DType::kI64, LoadAsDouble(tensor, offset));
  }
}

void StoreDouble(HostTensor& tensor, int64_t offset, double value) {
  switch (tensor.type) {
    case DType::kF64:
      return StoreBytes(tensor, offset, value);
    case DType::kF32:
      return StoreBytes(tensor, offset, static_cast<float>(value));
    case DType::kF16:
    case DType::kBf16:
      return StoreBytes(tensor, offset,
                        static_cast<uint16_t>(Encode(FormatOf(tensor.type), value)));
    case DType::kE4m3:
    case DType::kE5m2:
      return StoreBytes(tensor, offset, static_cast<uint8_t>(Encode(FormatOf(tensor.type), value)));
    default:
      return StoreInteger(tensor, offset, TruncateTo(tensor.type, value));
  }
}

void StoreInteger(HostTensor& tensor, int64_t offset, int64_t value) {
  switch (tensor.type) {
    case DType::kI64:
      return StoreBytes(tensor, offset, value);
    case DType::kI32:
      return StoreBytes(tensor, offset, static_cast<int32_t>(value));
    case DType::kI16:
      return StoreBytes(tensor, offset, static_cast<int16_t>(value));
    case DType::kI8:
    case DType::kU8:
      return StoreBytes(tensor, offset, static_cast<uint8_t>(value));
    case DType::kBool:
      return StoreBytes(tensor, offset, static_cast<uint8_t>(value != 0));
    case DType::kI4:
    case DType::kU4: {
      uint8_t& byte = tensor.bytes[offset / 2];
      const int shift = static_cast<int>(offset % 2 * 4);
      byte = static_cast<uint8_t>((byte & ~(0xF << shift)) | ((value & 0xF) << shift));
      return;
    }
    case DType::kF64:
      return StoreBytes(tensor, offset, static_cast<double>(value));
    case DType::kF32:
      return StoreBytes(tensor, offset, static_cast<float>(value));
    default:
      return StoreDouble(tensor, offset, StickyDouble(value));
  }
}

double RoundTo(DType type, double value) {
  if (type == DType::kF64) return value;
  if (type == DType::kF32) return static_cast<float>(value);
  if (!IsFloat(type)) return static_cast<double>(TruncateTo(type, value));
  return Decode(FormatOf(type), Encode(FormatOf(type), value));
}

HostTensor MakeHostTensor(const Graph& graph, const Tensor& tensor, uint8_t fill) {
  HostTensor result{tensor.type, StaticShape(graph, tensor), tensor.strides, {}};
  result.bytes.assign(static_cast<size_t>(BytesOf(tensor.type, SpanElements(graph, tensor))), fill);
  return result;
}

}  // namespace kiln::compiler
