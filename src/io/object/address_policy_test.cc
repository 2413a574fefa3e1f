#include "io/object/address_policy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace muster::io {
namespace {

TEST(AddressPolicyTest, EveryAddressHasItsKind) {
  const struct {
    const char* address;
    AddressKind kind;
  } cases[] = {
      {"8.8.8.8", AddressKind::kPublic},
      {"172.15.255.255", AddressKind::kPublic},
      {"172.32.0.0", AddressKind::kPublic},
      {"100.128.0.0", AddressKind::kPublic},
      {"2606:4700::1111", AddressKind::kPublic},
      {"::ffff:8.8.8.8", AddressKind::kPublic},
      {"10.1.2.3", AddressKind::kPrivate},
      {"172.16.0.1", AddressKind::kPrivate},
      {"172.31.255.255", AddressKind::kPrivate},
      {"192.168.0.1", AddressKind::kPrivate},
      {"100.64.0.1", AddressKind::kPrivate},
      {"fc00::1", AddressKind::kPrivate},
      {"fd12::1", AddressKind::kPrivate},
      {"::ffff:10.0.0.1", AddressKind::kPrivate},
      {"64:ff9b::10.0.0.1", AddressKind::kPrivate},
      {"2002:c0a8:1::1", AddressKind::kPrivate},
      {"127.0.0.1", AddressKind::kLoopback},
      {"127.255.255.254", AddressKind::kLoopback},
      {"::1", AddressKind::kLoopback},
      {"::ffff:127.0.0.1", AddressKind::kLoopback},
      {"::ffff:0:127.0.0.1", AddressKind::kLoopback},
      {"169.254.169.254", AddressKind::kLocal},
      {"::ffff:169.254.169.254", AddressKind::kLocal},
      {"2002:a9fe:a9fe::", AddressKind::kLocal},
      {"fe80::1%eth0", AddressKind::kLocal},
      {"fd00:ec2::254", AddressKind::kLocal},
      {"100.100.100.200", AddressKind::kLocal},
      {"168.63.129.16", AddressKind::kLocal},
      {"0.0.0.0", AddressKind::kReserved},
      {"0.1.2.3", AddressKind::kReserved},
      {"224.0.0.1", AddressKind::kReserved},
      {"255.255.255.255", AddressKind::kReserved},
      {"::", AddressKind::kReserved},
      {"::127.0.0.1", AddressKind::kReserved},
      {"ff02::1", AddressKind::kReserved},
      {"fec0::1", AddressKind::kReserved},
      {"2001:db8::1", AddressKind::kReserved},
      {"2001::1", AddressKind::kReserved},
      {"not an address", AddressKind::kReserved},
  };
  for (const auto& c : cases) EXPECT_EQ(KindOf(c.address), c.kind) << c.address;
}

TEST(AddressPolicyTest, SocketAddressesHaveTheSameKindAsTheirText) {
  sockaddr_in6 v6{.sin6_family = AF_INET6};
  inet_pton(AF_INET6, "::ffff:169.254.169.254", &v6.sin6_addr);
  EXPECT_EQ(KindOf(reinterpret_cast<sockaddr&>(v6), sizeof v6),
            AddressKind::kLocal);
  sockaddr_in v4{.sin_family = AF_INET};
  inet_pton(AF_INET, "10.0.0.1", &v4.sin_addr);
  EXPECT_EQ(KindOf(reinterpret_cast<sockaddr&>(v4), sizeof v4),
            AddressKind::kPrivate);
}

TEST(AddressPolicyTest, ATruncatedOrForeignAddressIsReserved) {
  sockaddr_in v4{.sin_family = AF_INET};
  inet_pton(AF_INET, "8.8.8.8", &v4.sin_addr);
  EXPECT_EQ(KindOf(reinterpret_cast<sockaddr&>(v4), 4), AddressKind::kReserved);
  sockaddr other{.sa_family = AF_UNIX};
  EXPECT_EQ(KindOf(other, sizeof other), AddressKind::kReserved);
}

TEST(AddressPolicyTest, RedirectsReachPublicAddressesOnly) {
  EXPECT_TRUE(MayReach(Reach::kPublic, AddressKind::kPublic));
  for (const auto kind : {AddressKind::kPrivate, AddressKind::kLoopback,
                          AddressKind::kLocal, AddressKind::kReserved}) {
    EXPECT_FALSE(MayReach(Reach::kPublic, kind));
    EXPECT_TRUE(MayReach(Reach::kAny, kind));
  }
}

// A name that a stranger's DNS server answers for must not lead to metadata.
TEST(AddressPolicyTest, NamesReachTheNetworkButNoMetadataService) {
  EXPECT_TRUE(MayReach(Reach::kNetwork, AddressKind::kPublic));
  EXPECT_TRUE(MayReach(Reach::kNetwork, AddressKind::kPrivate));
  EXPECT_TRUE(MayReach(Reach::kNetwork, AddressKind::kLoopback));
  EXPECT_FALSE(MayReach(Reach::kNetwork, AddressKind::kLocal));
  EXPECT_FALSE(MayReach(Reach::kNetwork, AddressKind::kReserved));
}

}  // namespace
}  // namespace muster::io
