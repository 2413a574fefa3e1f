#include "io/object/test_server.h"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <sstream>

#include "base/check.h"

extern char** environ;

namespace muster::io {
namespace {

constexpr size_t kPeriod = 65521;  // as in object_server.py

// Its input is a pipe that this process holds open until it ends.
int StartServer() {
  int input[2], output[2];
  CHECK_EQ(pipe(input), 0);
  CHECK_EQ(pipe(output), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  for (const int fd : {input[0], input[1], output[0], output[1]}) {
    posix_spawn_file_actions_addclose(&actions, fd);
  }
  std::string program = "python3";
  std::string script = MUSTER_SOURCE_DIR "/tests/object_server.py";
  char* arguments[] = {program.data(), script.data(), nullptr};
  pid_t child;
  CHECK_EQ(
      posix_spawnp(&child, "python3", &actions, nullptr, arguments, environ),
      0);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  std::string line;  // whole, so that the server's last write finds a reader
  for (char c = 0; c != '\n';) {
    CHECK_EQ(read(output[0], &c, 1), 1);
    line += c;
  }
  close(output[0]);
  return std::stoi(line);
}

std::string ReadText(const std::string& url) {
  ObjectClient client({}, {});
  const auto object = client.Open(url);
  CHECK(object.ok());
  const size_t size_bytes = client.Info(*object).size_bytes;
  if (size_bytes == 0) return "";
  const ReadOutcome read = ReadRange(client, *object, 0, size_bytes);
  CHECK(read.status.ok());
  return std::string(reinterpret_cast<const char*>(read.bytes.data()),
                     read.bytes.size());
}

}  // namespace

int TestServerPort() {
  static const int port = StartServer();
  return port;
}

std::string TestServerUrl(const std::string& path) {
  return fmt::format("http://127.0.0.1:{}{}", TestServerPort(), path);
}

std::string NewSession() {
  static std::atomic<int> next = 0;
  return fmt::format("s{}", next++);
}

std::vector<std::byte> ServedBytes(uint64_t offset, size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    const uint64_t at = (offset + i) % kPeriod;
    bytes[i] = static_cast<std::byte>(at * at % 251);
  }
  return bytes;
}

std::vector<std::string> SeenBy(const std::string& session) {
  std::istringstream text(ReadText(TestServerUrl("/seen/" + session)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

int NumConnections() {
  return std::stoi(ReadText(TestServerUrl("/connections")));
}

ReadOutcome ReadRange(ObjectClient& client, ObjectId object, uint64_t offset,
                      size_t size_bytes) {
  ReadOutcome outcome;
  outcome.bytes.resize(size_bytes);
  const RangeRequest request = {
      .object = object, .offset = offset, .dst = outcome.bytes, .tag = 77};
  CHECK_EQ(client.Submit({&request, 1}), 1u);
  RangeDone done;
  CHECK_EQ(client.Wait(1, {&done, 1}), 1u);
  CHECK_EQ(done.tag, 77u);
  outcome.status = done.status;
  return outcome;
}

ObjectSettings TestServerSettings() {
  return {.aws_access_key_id = "AKIDTEST",
          .aws_secret_access_key = "secret-key/test",
          .aws_session_token = "session-token",
          .aws_region = "test-region-1",
          .aws_endpoint = TestServerUrl("/s3"),
          .azure_account = "account",
          .azure_key = "YXp1cmUgdGVzdCBrZXk=",
          .azure_endpoint = TestServerUrl("/az/account"),
          .hf_endpoint = TestServerUrl("/hf"),
          .hf_token = "hf_test"};
}

}  // namespace muster::io
