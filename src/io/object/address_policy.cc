#include "io/object/address_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

namespace muster::io {
namespace {

using Ipv6 = std::array<uint8_t, 16>;

struct Ipv4Block {
  uint32_t first;
  int bits;
  AddressKind kind;
};

constexpr uint32_t Quad(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// IANA's special-purpose registry; the first that matches.
constexpr Ipv4Block kIpv4Blocks[] = {
    {Quad(100, 100, 100, 200), 32, AddressKind::kLocal},  // metadata
    {Quad(168, 63, 129, 16), 32, AddressKind::kLocal},    // Azure's host agent
    {Quad(192, 0, 0, 192), 32, AddressKind::kLocal},      // metadata
    {Quad(0, 0, 0, 0), 8, AddressKind::kReserved},
    {Quad(10, 0, 0, 0), 8, AddressKind::kPrivate},
    {Quad(100, 64, 0, 0), 10, AddressKind::kPrivate},
    {Quad(127, 0, 0, 0), 8, AddressKind::kLoopback},
    {Quad(169, 254, 0, 0), 16, AddressKind::kLocal},
    {Quad(172, 16, 0, 0), 12, AddressKind::kPrivate},
    {Quad(192, 0, 0, 0), 24, AddressKind::kReserved},
    {Quad(192, 0, 2, 0), 24, AddressKind::kReserved},
    {Quad(192, 88, 99, 0), 24, AddressKind::kReserved},
    {Quad(192, 168, 0, 0), 16, AddressKind::kPrivate},
    {Quad(198, 18, 0, 0), 15, AddressKind::kPrivate},
    {Quad(198, 51, 100, 0), 24, AddressKind::kReserved},
    {Quad(203, 0, 113, 0), 24, AddressKind::kReserved},
    {Quad(224, 0, 0, 0), 3, AddressKind::kReserved},
};

AddressKind KindOfIpv4(uint32_t address) {
  for (const Ipv4Block& block : kIpv4Blocks) {
    if ((address ^ block.first) >> (32 - block.bits) == 0) return block.kind;
  }
  return AddressKind::kPublic;
}

uint32_t QuadAt(const Ipv6& a, size_t at) {
  return Quad(a[at], a[at + 1], a[at + 2], a[at + 3]);
}

bool HasPrefix(const Ipv6& a, std::initializer_list<uint8_t> prefix) {
  size_t at = 0;
  for (const uint8_t byte : prefix) {
    if (a[at++] != byte) return false;
  }
  return true;
}

bool ZeroUpTo(const Ipv6& a, size_t end) {
  for (size_t i = 0; i < end; ++i) {
    if (a[i] != 0) return false;
  }
  return true;
}

// The kinds of IPv6 that carry an IPv4 address; `at` its place, or -1.
int EmbeddedIpv4At(const Ipv6& a) {
  const bool mapped = ZeroUpTo(a, 10) && a[10] == 0xff && a[11] == 0xff;
  const bool translated = ZeroUpTo(a, 8) && a[8] == 0xff && a[9] == 0xff &&
                          a[10] == 0 && a[11] == 0;
  const bool nat64 =
      HasPrefix(a, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0});
  if (mapped || translated || nat64) return 12;
  return HasPrefix(a, {0x20, 0x02}) ? 2 : -1;
}

AddressKind KindOfIpv6(const Ipv6& a) {
  if (ZeroUpTo(a, 15)) {
    return a[15] == 1 ? AddressKind::kLoopback : AddressKind::kReserved;
  }
  if (const int at = EmbeddedIpv4At(a); at >= 0) {
    return KindOfIpv4(QuadAt(a, static_cast<size_t>(at)));
  }
  if (HasPrefix(a, {0xfd, 0, 0x0e, 0xc2})) return AddressKind::kLocal;
  if ((a[0] & 0xfe) == 0xfc) return AddressKind::kPrivate;
  if (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) return AddressKind::kLocal;
  const bool documentation = HasPrefix(a, {0x20, 0x01, 0x0d, 0xb8});
  const bool teredo = HasPrefix(a, {0x20, 0x01, 0, 0});
  const bool global_unicast = (a[0] & 0xe0) == 0x20;
  return global_unicast && !documentation && !teredo ? AddressKind::kPublic
                                                     : AddressKind::kReserved;
}

}  // namespace

AddressKind KindOf(const sockaddr& address, socklen_t size_bytes) {
  if (address.sa_family == AF_INET && size_bytes >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return KindOfIpv4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6 && size_bytes >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    Ipv6 bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return KindOfIpv6(bytes);
  }
  return AddressKind::kReserved;
}

AddressKind KindOf(const std::string& address) {
  in_addr v4;
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    return KindOfIpv4(ntohl(v4.s_addr));
  }
  Ipv6 v6;
  const std::string without_zone = address.substr(0, address.find('%'));
  return inet_pton(AF_INET6, without_zone.c_str(), v6.data()) == 1
             ? KindOfIpv6(v6)
             : AddressKind::kReserved;
}

bool MayReach(Reach reach, AddressKind kind) {
  switch (reach) {
    case Reach::kPublic:
      return kind == AddressKind::kPublic;
    case Reach::kNetwork:
      return kind != AddressKind::kLocal && kind != AddressKind::kReserved;
    case Reach::kAny:
      return true;
  }
  return false;
}

const char* NameOf(AddressKind kind) {
  switch (kind) {
    case AddressKind::kPublic:
      return "a public address";
    case AddressKind::kPrivate:
      return "a private address";
    case AddressKind::kLoopback:
      return "a loopback address";
    case AddressKind::kLocal:
      return "a link-local or metadata address";
    case AddressKind::kReserved:
      return "a reserved address";
  }
  return "";
}

}  // namespace muster::io
