#include "cli/interrupt.h"

#include <csignal>

namespace muster::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction previous;

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  // No SA_RESTART: a read of the terminal returns, so that the prompt is shown
  // again.
  sigaction(SIGINT, &action, &previous);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous, nullptr); }

bool InterruptGuard::Take() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace muster::cli
