// How much each client has been served, so that steps are shared fairly.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster::runtime {

// Tokens that were run for each client, counted from the least served of those
// that are there when it comes: who was away has saved nothing up (virtual
// token counters: Sheng et al., "Fairness in Serving Large Language Models",
// OSDI 2024). One thread at a time.
class ClientShares {
 public:
  // The client has a sequence more. Each is left once.
  void Enter(const std::string& client);
  void Leave(const std::string& client);

  // REQUIRES: the client has entered.
  void Charge(const std::string& client, uint64_t num_tokens);

  // Who has less goes first. REQUIRES: the client has entered.
  uint64_t Served(const std::string& client) const;

 private:
  struct Account {
    uint64_t served = 0;
    uint64_t num_sequences = 0;
  };
  std::map<std::string, Account> accounts_;  // of those that are there
};

}  // namespace muster::runtime
