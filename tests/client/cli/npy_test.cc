// SPDX-License-Identifier: Apache-2.0
#include "client/cli/npy.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

using compiler::HostTensor;

HostTensor MakeTensor(DType type, std::vector<int64_t> shape) {
  HostTensor tensor;
  tensor.type = type;
  tensor.shape = shape;
  tensor.strides.assign(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    tensor.strides[i] = tensor.strides[i + 1] * shape[i + 1];
  tensor.bytes.resize(BytesOf(type, tensor.elements()));
  return tensor;
}

constexpr DType kAll[] = {DType::kF64,  DType::kF32, DType::kF16, DType::kBf16, DType::kE4m3,
                          DType::kE5m2, DType::kI64, DType::kI32, DType::kI16,  DType::kI8,
                          DType::kU8,   DType::kI4,  DType::kU4,  DType::kBool};

TEST(Npy, EveryTypeAndRankComesBackAsItWas) {
  for (const DType type : kAll) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {5}, {3, 4}, {2, 1, 3}, {0}, {4, 0, 2}}) {
      HostTensor tensor = MakeTensor(type, shape);
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        if (IsFloat(type)) {
          compiler::StoreDouble(tensor, i, static_cast<double>(i % 7) - 3);
        } else {
          compiler::StoreInteger(tensor, i,
                                 type == DType::kBool ? i % 2
                                 : type == DType::kI4 ? i % 16 - 8
                                                      : i % 16);
        }
      }
      const auto array = ParseNpy(PrintNpy(ToNpy(tensor)));
      ASSERT_TRUE(array.ok()) << array.status() << " " << Print(type);
      HostTensor back = MakeTensor(type, shape);
      ASSERT_TRUE(FillTensor(*array, &back).ok()) << Print(type);
      EXPECT_EQ(back.bytes, tensor.bytes) << Print(type) << " of rank " << shape.size();
    }
  }
}

TEST(Npy, StridesAreFollowedAndPaddingLeftAlone) {
  HostTensor tensor = MakeTensor(DType::kF32, {2, 3});
  tensor.strides = {5, 1};
  tensor.bytes.assign(8 * 4, 0xaa);
  NpyArray array{"<f4", {2, 3}, std::string(24, '\0')};
  for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<char>(i);
  ASSERT_TRUE(FillTensor(array, &tensor).ok());
  EXPECT_EQ(tensor.bytes[0], 0);
  EXPECT_EQ(tensor.bytes[3 * 4], 0xaa);
  EXPECT_EQ(tensor.bytes[5 * 4], 12);
  EXPECT_EQ(ToNpy(tensor).bytes, array.bytes);
}

TEST(Npy, WhatAStrideOfZeroRepeatsHasToBeEqual) {
  HostTensor tensor = MakeTensor(DType::kF32, {2, 3});
  tensor.strides = {0, 1};
  tensor.bytes.assign(3 * 4, 0);
  NpyArray array{"<f4", {2, 3}, std::string(24, '\0')};
  for (size_t i = 0; i < 24; ++i) array.bytes[i] = static_cast<char>(i % 12);
  EXPECT_TRUE(FillTensor(array, &tensor).ok());
  EXPECT_EQ(tensor.bytes[11], 11);
  array.bytes[16] = 99;
  const absl::Status status = FillTensor(array, &tensor);
  EXPECT_EQ(GetErrorInfo(status).reason, "VALUES_DIFFER");
  // Elements 1 and 4 share a place.
  EXPECT_NE(status.message().find("element 1:"), std::string::npos) << status;
  HostTensor nibbles = MakeTensor(DType::kI4, {2});
  nibbles.strides = {0};
  EXPECT_TRUE(FillTensor({"|i1", {2}, std::string("\x03\x03")}, &nibbles).ok());
  EXPECT_EQ(GetErrorInfo(FillTensor({"|i1", {2}, std::string("\x03\x04")}, &nibbles)).reason,
            "VALUES_DIFFER");
}

TEST(Npy, WritesWhatNumpyReads) {
  const std::string file = PrintNpy({"<f4", {3}, std::string(12, '\0')});
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(file.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
  EXPECT_EQ((file.size() - 12) % 64, 0);
  EXPECT_EQ(file[file.size() - 13], '\n');
  EXPECT_NE(PrintNpy({"<f4", {}, std::string(4, '\0')}).find("'shape': (), }"), std::string::npos);
}

TEST(Npy, RefusesWhatItCannotReadAndSaysWhy) {
  const std::string good = PrintNpy({"<f4", {2}, std::string(8, '\0')});
  const auto refuses = [](const std::string& file, const std::string& words) {
    const auto array = ParseNpy(file);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(array.status().message().find(words), std::string::npos) << array.status();
  };
  refuses("", "does not begin");
  refuses("not an array at all", "does not begin");
  refuses(good.substr(0, 20), "cut short");
  refuses(good.substr(0, good.size() - 1), "bytes of data");
  refuses(good + "x", "bytes of data");
  std::string fortran = good;
  fortran.replace(fortran.find("False"), 5, "True ");
  refuses(fortran, "Fortran order");
  std::string big = good;
  big[big.find("<f4")] = '>';
  refuses(big, ">f4");
  std::string complex = good;
  complex.replace(complex.find("<f4"), 3, "<c8");
  refuses(complex, "<c8");
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(ParseNpy(good.substr(0, cut)).ok()) << cut;
}

TEST(Npy, RefusesAnotherShapeTypeOrNibble) {
  HostTensor tensor = MakeTensor(DType::kF32, {2, 2});
  EXPECT_FALSE(FillTensor({"<f4", {4}, std::string(16, '\0')}, &tensor).ok());
  EXPECT_FALSE(FillTensor({"<f8", {2, 2}, std::string(32, '\0')}, &tensor).ok());
  HostTensor nibbles = MakeTensor(DType::kI4, {2});
  const absl::Status status = FillTensor({"|i1", {2}, std::string("\x01\x08")}, &nibbles);
  EXPECT_NE(status.message().find("-8 to 7"), std::string::npos) << status;
}

TEST(Npy, FilesAreNamedInErrors) {
  HostTensor tensor = MakeTensor(DType::kF32, {2});
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / "kiln_npy_test.npy").string();
  ASSERT_TRUE(SaveTensor(path, tensor).ok());
  EXPECT_TRUE(LoadTensor(path, &tensor).ok());
  HostTensor other = MakeTensor(DType::kF32, {3});
  EXPECT_NE(LoadTensor(path, &other).message().find(path), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_EQ(LoadTensor(path, &tensor).code(), absl::StatusCode::kInvalidArgument);
  // A folder opens like a file, and a device has no end.
  for (const char* none : {"/tmp", "/dev/zero"})
    EXPECT_EQ(GetErrorInfo(LoadTensor(none, &tensor)).reason, "NO_SUCH_FILE") << none;
  EXPECT_FALSE(SaveTensor("/nonexistent/folder/x.npy", tensor).ok());
}

}  // namespace
}  // namespace kiln::cli
