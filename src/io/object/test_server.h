// For tests: the object store of tests/object_server.py, and a client of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/object/object_client.h"

namespace muster::io {

// The server's port; starts it the first time. It ends with this process.
int TestServerPort();

// "http://127.0.0.1:PORT" and `path`.
std::string TestServerUrl(const std::string& path);

// A name that no other test of this process uses.
std::string NewSession();

// Bytes [offset, offset + size) of each of the server's objects.
std::vector<std::byte> ServedBytes(uint64_t offset, size_t size_bytes);

// What the server was asked in a session, a line per request.
std::vector<std::string> SeenBy(const std::string& session);
// How many connections it has had.
int NumConnections();

// Time passes only when nothing but time helps.
class FakeClock : public ObjectClock {
 public:
  int64_t NowMs() override { return now_ms_; }
  int64_t UnixSeconds() override { return 1440938160; }
  int64_t BeforeWait(int64_t wait_ms) override {
    now_ms_ += wait_ms;
    return 0;
  }

 private:
  int64_t now_ms_ = 1'000'000;
};

// Opens nothing: one read of an object that is open, waited for.
struct ReadOutcome {
  Status status;
  std::vector<std::byte> bytes;
};
ReadOutcome ReadRange(ObjectClient& client, ObjectId object, uint64_t offset,
                      size_t size_bytes);

// Endpoints of the server, with its keys and tokens.
ObjectSettings TestServerSettings();

}  // namespace muster::io
