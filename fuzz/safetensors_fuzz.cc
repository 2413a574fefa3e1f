// The safetensors header reader on any bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/safetensors.h"
#include "io/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", 0);
  if (write(fd, data, size) == static_cast<ssize_t>(size)) {
    const auto file =
        muster::io::File::Open("/proc/self/fd/" + std::to_string(fd));
    if (file.ok())
      static_cast<void>(muster::formats::ReadSafetensorsHeader(*file));
  }
  close(fd);
  return 0;
}
