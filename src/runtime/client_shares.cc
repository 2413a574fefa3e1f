#include "runtime/client_shares.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace muster::runtime {

void ClientShares::Enter(const std::string& client) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const auto& [name, account] : accounts_) {
    least = std::min(least, account.served);
  }
  const auto [entry, is_new] = accounts_.try_emplace(client);
  if (is_new && accounts_.size() > 1) entry->second.served = least;
  ++entry->second.num_sequences;
}

void ClientShares::Leave(const std::string& client) {
  const auto entry = accounts_.find(client);
  CHECK(entry != accounts_.end());
  if (--entry->second.num_sequences == 0) accounts_.erase(entry);
}

void ClientShares::Charge(const std::string& client, uint64_t num_tokens) {
  accounts_.at(client).served += num_tokens;
}

uint64_t ClientShares::Served(const std::string& client) const {
  return accounts_.at(client).served;
}

}  // namespace muster::runtime
