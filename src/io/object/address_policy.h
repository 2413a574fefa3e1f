// Which network addresses a request may reach. A URL that a stranger chose (a
// redirect) must not lead into the operator's own network.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace muster::io {

enum class AddressKind : uint8_t {
  kPublic,
  kPrivate,   // RFC 1918, carrier-grade NAT, unique local
  kLoopback,  // this machine
  kLocal,     // link-local and the addresses of cloud metadata services
  kReserved,  // unspecified, multicast, documentation, future use
};

// Looks through IPv4 within IPv6 (mapped, compatible, NAT64, 6to4). kReserved
// for what is neither IPv4 nor IPv6.
AddressKind KindOf(const sockaddr& address, socklen_t size_bytes);
// Of an address in text, as libcurl reports it: "192.0.2.1", "2001:db8::1".
AddressKind KindOf(const std::string& address);

// How far a request may reach.
enum class Reach : uint8_t {
  kPublic,   // targets of redirects
  kNetwork,  // a host name the operator wrote: not kLocal, not kReserved
  kAny,      // an address the operator wrote, or private ones were allowed
};

bool MayReach(Reach reach, AddressKind kind);

// For people: "a loopback address".
const char* NameOf(AddressKind kind);

}  // namespace muster::io
