// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty_vfs.h"

#include <sqlite3.h>

#include <cstring>

namespace kiln {
namespace {

sqlite3_vfs* real_vfs = nullptr;
sqlite3_vfs faulty_vfs;
FaultyVfs* faults = nullptr;

// The real file lies behind this in the same allocation.
struct File {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }
int Next(FaultyVfs::Call call) { return faults ? faults->Next(call) : SQLITE_OK; }

int Close(sqlite3_file* file) { return Real(file)->pMethods->xClose(Real(file)); }
int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  const int fault = Next(FaultyVfs::kRead);
  return fault ? fault : Real(file)->pMethods->xRead(Real(file), to, size, at);
}
int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const int fault = Next(FaultyVfs::kWrite);
  if (fault == SQLITE_FULL) Real(file)->pMethods->xWrite(Real(file), from, size / 2, at);
  return fault ? fault : Real(file)->pMethods->xWrite(Real(file), from, size, at);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int fault = Next(FaultyVfs::kTruncate);
  return fault ? fault : Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  const int fault = Next(FaultyVfs::kSync);
  return fault ? fault : Real(file)->pMethods->xSync(Real(file), flags);
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReserved(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
}
int FileControl(sqlite3_file* file, int op, void* arg) {
  return Real(file)->pMethods->xFileControl(Real(file), op, arg);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int Traits(sqlite3_file* file) { return Real(file)->pMethods->xDeviceCharacteristics(Real(file)); }
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, out);
}
int ShmLock(sqlite3_file* file, int at, int n, int flags) {
  const int fault = (flags & SQLITE_SHM_LOCK) ? Next(FaultyVfs::kLock) : SQLITE_OK;
  return fault ? fault : Real(file)->pMethods->xShmLock(Real(file), at, n, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->pMethods->xShmUnmap(Real(file), remove);
}

constexpr sqlite3_io_methods kMethods = {2,           Close,      Read,    Write,  Truncate,
                                         Sync,        FileSize,   Lock,    Unlock, CheckReserved,
                                         FileControl, SectorSize, Traits,  ShmMap, ShmLock,
                                         ShmBarrier,  ShmUnmap,   nullptr, nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int result = real_vfs->xOpen(real_vfs, name, Real(file), flags, out_flags);
  if (result == SQLITE_OK) file->pMethods = &kMethods;
  return result;
}

}  // namespace

FaultyVfs::FaultyVfs() {
  real_vfs = sqlite3_vfs_find(nullptr);
  faulty_vfs = *real_vfs;
  faulty_vfs.zName = "faulty";
  faulty_vfs.pNext = nullptr;
  faulty_vfs.szOsFile = static_cast<int>(sizeof(File)) + real_vfs->szOsFile;
  faulty_vfs.xOpen = Open;
  faults = this;
  sqlite3_vfs_register(&faulty_vfs, 1);
}

FaultyVfs::~FaultyVfs() {
  sqlite3_vfs_unregister(&faulty_vfs);
  sqlite3_vfs_register(real_vfs, 1);
  faults = nullptr;
}

void FaultyVfs::Fail(int calls, int64_t nth, int code, int64_t times) {
  calls_ = 0;
  code_ = code;
  before_ = nth;
  left_ = times;
  injected_ = 0;
  calls_ = calls;
}

void FaultyVfs::Heal() { calls_ = 0; }

int FaultyVfs::Next(Call call) {
  if (!(calls_ & call)) return 0;
  if (before_.fetch_sub(1) > 0) return 0;
  if (left_.fetch_sub(1) <= 0) return 0;
  ++injected_;
  return code_;
}

}  // namespace kiln
