// For tests: a file of random bytes that goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace muster::io {

inline std::vector<std::byte> RandomBytes(size_t size_bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size_bytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

class TestingFile {
 public:
  TestingFile(const std::string& name, std::vector<std::byte> bytes)
      : path_(::testing::TempDir() + name), bytes_(std::move(bytes)) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
  }
  ~TestingFile() { std::remove(path_.c_str()); }
  TestingFile(const TestingFile&) = delete;
  TestingFile& operator=(const TestingFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::string path_;
  std::vector<std::byte> bytes_;
};

}  // namespace muster::io
