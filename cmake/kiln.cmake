# kiln_library(NAME SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ...)   one library, includes from the root of the tree
# kiln_binary(NAME SRCS ... DEPS ...)                              one program, in build/<preset>/bin
# kiln_test(NAME SRCS ... DEPS ... LABEL core|service|slow [TIMEOUT S]) one GoogleTest program; NAME as worker.search.space
include(GoogleTest)

add_library(kiln_flags INTERFACE)
target_include_directories(kiln_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(kiln_flags INTERFACE -Wall -Wextra -Wno-sign-compare -Wno-missing-field-initializers
  -Werror=unused-result -Werror=return-type)
if(KILN_WERROR)
  target_compile_options(kiln_flags INTERFACE -Werror)
endif()
if(KILN_SANITIZE)
  target_compile_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
  if(KILN_SANITIZE MATCHES undefined)
    target_compile_options(kiln_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
  target_link_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE})
endif()

function(kiln_library NAME)
  cmake_parse_arguments(A "" "" "SRCS;HDRS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${NAME} STATIC ${A_SRCS} ${A_HDRS})
  target_link_libraries(${NAME} PUBLIC kiln_flags ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
endfunction()

function(kiln_binary NAME)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${A_SRCS})
  target_link_libraries(${NAME} PRIVATE kiln_flags ${A_DEPS})
endfunction()

function(kiln_test NAME)
  cmake_parse_arguments(A "" "LABEL;TIMEOUT" "SRCS;DEPS;ENV" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  string(REPLACE "." "_" TARGET test_${NAME})
  add_executable(${TARGET} ${A_SRCS})
  set_target_properties(${TARGET} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${TARGET} PRIVATE kiln_flags ${A_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${TARGET} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES LABELS "${A_LABEL}" TIMEOUT ${A_TIMEOUT} ENVIRONMENT "${A_ENV}")
endfunction()
