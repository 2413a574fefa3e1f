#include "io/open_read_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace muster::io {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// From now on this process gets EPERM from io_uring_setup, as in a container.
bool ForbidUring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(OpenReadEngineTest, EitherItIsUringOrItSaysWhyNot) {
  const OpenedReadEngine opened = OpenReadEngine({.depth = 4});
  EXPECT_THAT(opened.engine->Name(),
              StartsWith(opened.why_not_uring.empty() ? "io_uring" : "pread"));
}

TEST(OpenReadEngineTest, UringThatIsNotWantedIsNotUsed) {
  const OpenedReadEngine opened =
      OpenReadEngine({.depth = 4, .allow_uring = false});
  EXPECT_EQ(opened.engine->Name(), "pread, 4 threads");
  EXPECT_EQ(opened.why_not_uring, "not wanted");
}

TEST(OpenReadEngineTest, WhereUringIsForbiddenThreadsRead) {
  const auto look = [] {
    if (!ForbidUring()) std::exit(2);
    const OpenedReadEngine opened = OpenReadEngine({.depth = 2});
    std::exit(opened.engine->Name() == "pread, 2 threads" &&
                      opened.why_not_uring ==
                          "io_uring: Operation not permitted"
                  ? 0
                  : 1);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster::io
