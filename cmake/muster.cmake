# Build rules shared by every folder of src/.
include(CTest)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(simdjson REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto)
if(MUSTER_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Warnings, include path and sanitizers: every target of ours links this.
add_library(muster_options INTERFACE)
target_compile_features(muster_options INTERFACE cxx_std_20)
target_compile_options(muster_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # Designated initializers leave the rest to its default: that is their point.
  -Wno-missing-field-initializers
  # Float results must not depend on what the compiler chooses to fuse.
  -ffp-contract=off
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_include_directories(muster_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(muster_options INTERFACE MUSTER_VERSION="${PROJECT_VERSION}")
if(MUSTER_SANITIZE)
  target_compile_options(muster_options INTERFACE
    -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(muster_options INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()
if(MUSTER_BUILD_FUZZERS)
  target_compile_options(muster_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Tests of one build do not meet those of another: each has a folder that
# testing::TempDir() names.
function(muster_own_temporary_files test)
  set(folder ${PROJECT_BINARY_DIR}/tmp/${test}/)
  file(MAKE_DIRECTORY ${folder})
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT TEST_TMPDIR=${folder})
endfunction()

# muster_library(NAME SOURCES a.cc ... TESTS a_test.cc ... DEPS folder ... LINK target ...)
# One call per folder of src/: a static library muster_NAME and one test program
# NAME_test from all files in TESTS. DEPS must agree with src/LAYERS (the `layers`
# test checks the includes against it).
function(muster_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;TESTS;DEPS;LINK" )
  set(target muster_${name})
  list(TRANSFORM arg_DEPS PREPEND muster_)
  add_library(${target} STATIC ${arg_SOURCES})
  target_link_libraries(${target} PUBLIC muster_options ${arg_DEPS} PRIVATE ${arg_LINK})
  if(MUSTER_BUILD_TESTS AND arg_TESTS)
    add_executable(${name}_test ${arg_TESTS})
    target_link_libraries(${name}_test PRIVATE ${target} ${arg_LINK} GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      MUSTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_precompile_headers(${name}_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    muster_own_temporary_files(${name})
  endif()
endfunction()
