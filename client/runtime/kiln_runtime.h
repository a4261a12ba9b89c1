/* SPDX-License-Identifier: Apache-2.0
 * Kiln's runtime: loads, binds and launches a plan. A C ABI; needs libc, libm and threads, nothing
 * else (a vendor library is opened at run time if a plan has a library step). Workers measure with
 * this very code: what is measured is what is deployed.
 *
 * Thread safety: a kiln_plan may be launched from one thread at a time per kiln_workspace; plans,
 * pools and workspaces may be shared between threads otherwise. No function aborts or prints;
 * errors are a code and a text.
 */
#ifndef KILN_RUNTIME_H_
#define KILN_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what an emitted CPU kernel sees ---- */

/* One argument of a step, in the plan's order. */
typedef union kiln_arg {
  void* pointer;
  int64_t integer;
  double number;
} kiln_arg;

/* Which block of the step's grid to compute. */
typedef struct kiln_block {
  int64_t index[3];
  int64_t grid[3];
  void* shared; /* this thread's scratch: the step's shared_bytes, 64-byte aligned, contents
                   undefined */
} kiln_block;

/* An emitted entry. Called once per block, from any of the pool's threads, concurrently. */
typedef void (*kiln_cpu_kernel)(const kiln_arg* args, const kiln_block* block);

/* ---- errors ---- */

typedef enum kiln_code {
  KILN_OK = 0,
  KILN_INVALID_PLAN = 1, /* the text is not a plan */
  KILN_BAD_ARTIFACT = 2, /* missing, digest differs, not loadable, or an entry is not in it */
  KILN_UNSUPPORTED = 3,  /* a step kind, feature or library that this machine or build lacks */
  KILN_BAD_ARGUMENT = 4, /* pointer null, misaligned, or aliased where it may not be; wrong count */
  KILN_OUT_OF_MEMORY = 5
} kiln_code;

/* The text of the last error on this thread: what, where, what is allowed. */
const char* kiln_error(void);

/* ---- threads ---- */

typedef struct kiln_pool kiln_pool;
/* Threads that run blocks, pinned one per usable core where `pin` is not 0. `threads` 0: as many as
 * this process may use. The calling thread is one of them; with `pin` it is pinned too, until it
 * destroys the pool. Launches on one pool take turns. */
kiln_code kiln_pool_create(int threads, int pin, kiln_pool** pool);
int kiln_pool_threads(const kiln_pool* pool);
void kiln_pool_destroy(kiln_pool* pool);

/* ---- this machine's CPU ---- */

/* 1 if code may use the feature ("avx2", "fma", "neon"): the CPU has it and the operating system
 * saves its registers. */
int kiln_cpu_has(const char* feature);
/* The usable features, one by one; null after the last. */
const char* kiln_cpu_feature(int index);

/* ---- plans ---- */

typedef struct kiln_plan kiln_plan;

/* Gives the bytes of an artifact by digest; they must live until kiln_plan_load returns. Nonzero:
 * not to be had. */
typedef int (*kiln_artifact_source)(void* context, const char* digest, const void** bytes,
                                    size_t* size);

/* Parses the text (proto/contract/plan.h), checks the device's features and every artifact's
 * digest, and loads the code. */
kiln_code kiln_plan_load(const char* text, size_t size, kiln_artifact_source source, void* context,
                         kiln_plan** plan);
void kiln_plan_destroy(kiln_plan* plan);

int kiln_plan_tensors(const kiln_plan* plan); /* inputs, constants and outputs, in order */
int64_t kiln_plan_alignment(const kiln_plan* plan, int tensor);
int64_t kiln_plan_span_bytes(const kiln_plan* plan, int tensor);
int64_t kiln_plan_workspace_bytes(const kiln_plan* plan);
int64_t kiln_plan_persistent_bytes(const kiln_plan* plan);

/* Runs the prepack steps on the constants (`tensors` as for a launch; others may be null). Needed
 * once before the first launch of a plan with persistent_bytes > 0, and again if a constant
 * changes. */
kiln_code kiln_plan_prepack(kiln_plan* plan, kiln_pool* pool, void* const* tensors,
                            const int64_t* dims);

/* Launches once and returns when it is done. `tensors`: base pointers in order. `workspace`:
 * kiln_plan_workspace_bytes bytes, 64-byte aligned (may be null if 0). `dims`: values of the
 * dynamic dims (may be null). Allocates nothing; checks pointers, alignment, and that an output
 * overlaps no other tensor but the one that it is declared to alias, whose pointer it then has. */
kiln_code kiln_plan_launch(const kiln_plan* plan, kiln_pool* pool, void* const* tensors,
                           void* workspace, const int64_t* dims);

/* ---- vendor libraries ---- */

/* "openblas 0.3.21 zen" if it can be opened here, else null. Thread counts follow the pool. */
const char* kiln_library_identity(const char* library);

#ifdef __cplusplus
}
#endif
#endif /* KILN_RUNTIME_H_ */
