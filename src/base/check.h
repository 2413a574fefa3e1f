// CHECK: for what only a bug in this program can break. Prints and aborts, in
// every build. What the world can do to us is a Status (base/status.h).
#pragma once

namespace muster {

[[noreturn]] void CheckFailed(const char* file, int line, const char* what);

}  // namespace muster

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::muster::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
