# kiln_messages and, on top of them, kiln_proto (services): generated; kiln_wire: the messages' conversion to the contract
# (wire.h).
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)   # whoever links kiln_wire needs them, in any folder
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
find_program(KILN_GRPC_PLUGIN grpc_cpp_plugin)
if(NOT KILN_GRPC_PLUGIN)
  message(FATAL_ERROR "grpc_cpp_plugin is missing; install the package protobuf-compiler-grpc")
endif()

# The google protos are no part of this tree: they come from a jar that distributions package.
file(GLOB KILN_GOOGLE_JARS LIST_DIRECTORIES false
  /usr/share/java/proto-google-common-protos.jar /usr/share/java/*google-common-protos*.jar
  /usr/share/maven-repo/com/google/api/grpc/proto-google-common-protos/*/*google-common-protos*.jar)
set(KILN_GOOGLE_PROTOS ${CMAKE_CURRENT_BINARY_DIR}/google_protos)
if(NOT EXISTS ${KILN_GOOGLE_PROTOS}/google/longrunning/operations.proto)
  foreach(JAR IN LISTS KILN_GOOGLE_JARS)
    if(EXISTS ${JAR})  # a dangling link otherwise
      file(ARCHIVE_EXTRACT INPUT ${JAR} DESTINATION ${KILN_GOOGLE_PROTOS}
        PATTERNS "google/rpc/*.proto" "google/longrunning/*.proto" "google/api/*.proto")
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS ${KILN_GOOGLE_PROTOS}/google/longrunning/operations.proto)
  message(FATAL_ERROR "google/longrunning/operations.proto is in no jar that matches "
    "/usr/share/java/*google-common-protos*.jar; install the package libgoogle-common-protos-java")
endif()

# What operations.proto needs grew with its releases, hence the existence test.
set(KILN_PROTO_FILES)
foreach(F google/api/annotations google/api/client google/api/field_behavior google/api/http google/api/launch_stage
          google/rpc/code google/rpc/error_details google/rpc/status google/longrunning/operations)
  if(EXISTS ${KILN_GOOGLE_PROTOS}/${F}.proto)
    list(APPEND KILN_PROTO_FILES ${F})
  endif()
endforeach()
set(KILN_OWN_PROTO_FILES kiln/v1/artifact kiln/v1/kiln kiln/v1/types kiln/v1/worker)
file(STRINGS ${KILN_GOOGLE_PROTOS}/google/rpc/error_details.proto KILN_ERROR_INFO REGEX "^message ErrorInfo")
if(NOT KILN_ERROR_INFO)
  list(APPEND KILN_OWN_PROTO_FILES compat/error_info)
endif()
set(KILN_GRPC_FILES google/longrunning/operations kiln/v1/artifact kiln/v1/kiln kiln/v1/worker)

set(KILN_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${KILN_GENERATED})
set(KILN_MESSAGE_SRCS)
set(KILN_SERVICE_SRCS)
foreach(F IN LISTS KILN_PROTO_FILES KILN_OWN_PROTO_FILES)
  if(F IN_LIST KILN_OWN_PROTO_FILES)
    set(INPUT ${CMAKE_CURRENT_SOURCE_DIR}/${F}.proto)
  else()
    set(INPUT ${KILN_GOOGLE_PROTOS}/${F}.proto)
  endif()
  set(OUTPUTS ${KILN_GENERATED}/${F}.pb.cc ${KILN_GENERATED}/${F}.pb.h)
  list(APPEND KILN_MESSAGE_SRCS ${OUTPUTS})
  set(GRPC_ARGS)
  if(F IN_LIST KILN_GRPC_FILES)
    set(SERVICES ${KILN_GENERATED}/${F}.grpc.pb.cc ${KILN_GENERATED}/${F}.grpc.pb.h)
    list(APPEND OUTPUTS ${SERVICES})
    list(APPEND KILN_SERVICE_SRCS ${SERVICES})
    set(GRPC_ARGS --grpc_out=${KILN_GENERATED} --plugin=protoc-gen-grpc=${KILN_GRPC_PLUGIN})
  endif()
  add_custom_command(OUTPUT ${OUTPUTS}
    COMMAND protobuf::protoc -I ${CMAKE_CURRENT_SOURCE_DIR} -I ${KILN_GOOGLE_PROTOS} --cpp_out=${KILN_GENERATED}
            ${GRPC_ARGS} ${INPUT}
    DEPENDS ${INPUT} VERBATIM)
endforeach()

add_library(kiln_messages STATIC ${KILN_MESSAGE_SRCS})
target_include_directories(kiln_messages SYSTEM PUBLIC ${KILN_GENERATED})
target_link_libraries(kiln_messages PUBLIC protobuf::libprotobuf)
add_library(kiln_proto STATIC ${KILN_SERVICE_SRCS})
target_link_libraries(kiln_proto PUBLIC kiln_messages gRPC::grpc++)
# Generated: no warnings of interest, and nobody steps through it.
target_compile_options(kiln_messages PRIVATE -w -g0)
target_compile_options(kiln_proto PRIVATE -w -g0)

kiln_library(kiln_wire
  SRCS wire_job.cc wire_plan.cc wire_record.cc wire_status.cc wire_workload.cc
  HDRS wire.h wire_values.h
  DEPS kiln_contract kiln_messages gRPC::grpc++ absl::status absl::statusor absl::strings absl::time)
