#include "runtime/plan_tiers.h"

#include <fmt/format.h>

#include <algorithm>

#include "experts/cold_fetcher.h"
#include "experts/expert_list.h"
#include "experts/pack_store.h"
#include "experts/source_expert.h"
#include "experts/source_store.h"
#include "experts/warm_fetcher.h"
#include "io/known_disk.h"
#include "io/open_read_engine.h"
#include "io/remote_files.h"
#include "runtime/kv_cache.h"

namespace muster::runtime {
namespace {

MemoryDemand DemandOf(const model::ModelConfig& config,
                      const EngineOptions& options) {
  const size_t positions =
      std::max(options.kv_positions,
               std::min(options.context_length, config.context_length));
  return {.kv_bytes = KvCache::SizeBytes(config, positions, options.kv_type),
          .working_bytes =
              WorkingBytes(config, std::min(positions, options.chunk_tokens),
                           std::min(positions, options.logit_rows))};
}

// Enough to keep the disk busy while a prompt's layer computes. Where experts
// must be converted, each takes memory of its own on the way.
size_t ReadsInFlight(const TierOptions& options,
                     const experts::ExpertStore& store) {
  if (options.reads_in_flight != 0) return options.reads_in_flight;
  return store.reads_into_slot() ? 24 : 8;
}

// Where the experts are when that is not here.
struct RemoteStore {
  // Of all paths of the store; null for a local one. Empty: all are local.
  std::vector<std::shared_ptr<io::RemoteFile>> files;
  bool is_staged = true;  // whole
  uint64_t memory_bytes = 0;
};

Result<RemoteStore> OpenRemote(const experts::ExpertStore& store) {
  RemoteStore remote;
  const std::vector<std::string>& paths = store.paths();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!io::IsRemotePath(paths[i])) continue;
    remote.files.resize(paths.size());
    ASSIGN_OR_RETURN(remote.files[i], io::OpenRemoteFile(paths[i]));
    io::RemoteFile* file = remote.files[i].get();
    const io::RemoteRange all = {file, 0, file->size_bytes()};
    if (!file->files().Present({&all, 1})) remote.is_staged = false;
    remote.memory_bytes = file->files().MemoryBytes();
  }
  return remote;
}

// As the disk was found to be fastest; where it cannot be probed, directly.
// What comes over the network has just been written: the page cache has it.
bool ReadsDirectly(const TierOptions& options,
                   const experts::ExpertStore& store,
                   const RemoteStore& remote) {
  if (options.direct_reads) return *options.direct_reads;
  if (!remote.is_staged) return false;
  const bool is_local = remote.files.empty() || remote.files[0] == nullptr;
  const auto disk = io::KnownDisk(is_local ? store.paths()[0]
                                           : remote.files[0]->local_path());
  return !disk.ok() || disk->best.direct;
}

std::unique_ptr<experts::ExpertStore> MakeStore(
    const formats::ModelFiles& files, const model::WeightIndex& index,
    const experts::ExpertTable& table, bool with_copies) {
  if (files.pack != nullptr) {
    return std::make_unique<experts::PackStore>(files.pack, with_copies);
  }
  std::vector<experts::SourceStore::SourceLayer> layers(table.num_layers());
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    if (table.layer(l).num_experts != 0) {
      layers[l].experts = index.layers[l].experts;
    }
  }
  return std::make_unique<experts::SourceStore>(files.paths, std::move(layers));
}

// Of the same experts, where copies were asked for. Fails with kInvalidArgument
// where there are none.
Result<std::optional<experts::ExpertTable>> CopyTable(
    const formats::ModelFiles& files, const EngineOptions& options,
    const experts::ExpertTable& table) {
  std::optional<experts::ExpertTable> copies;
  if (!options.routing.tail_weight) return copies;
  if (files.pack == nullptr || files.pack->copies.empty()) {
    return InvalidArgument(fmt::format(
        "{}: has no low-bit copies of its experts, which --tail computes with: "
        "make a pack that has them (muster pack MODEL OUT/ --tail q2_k)",
        files.path));
  }
  std::vector<experts::ExpertTable::Layer> layers;
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    layers.push_back(table.layer(l));
    layers.back().layout = files.pack->copies[l].layout;
  }
  copies.emplace(std::move(layers));
  return copies;
}

Result<experts::PoolOptions> PoolRules(const TierOptions& options,
                                       const experts::ExpertTable& table) {
  experts::PoolOptions pool = {
      .load_after = options.load_after,
      .unload_idle_seconds = options.unload_idle_seconds};
  ASSIGN_OR_RETURN(pool.pinned,
                   experts::ParseExpertList(options.pin_experts, table));
  ASSIGN_OR_RETURN(pool.never_kept,
                   experts::ParseExpertList(options.never_keep, table));
  return pool;
}

}  // namespace

Result<experts::ExpertTable> MakeExpertTable(const model::ModelConfig& config,
                                             const model::WeightIndex& index) {
  ASSIGN_OR_RETURN(const auto layouts, experts::LayoutsOf(index, config));
  std::vector<experts::ExpertTable::Layer> layers(config.layers.size());
  for (size_t l = 0; l < layers.size(); ++l) {
    if (!config.layers[l].is_moe) continue;
    layers[l] = {.num_experts = config.layers[l].router.num_experts,
                 .top_k = config.layers[l].router.top_k,
                 .layout = layouts[l]};
  }
  return experts::ExpertTable(std::move(layers));
}

Status PlanTiers(const formats::ModelFiles& files,
                 const model::WeightIndex& index, const EngineOptions& options,
                 const WeightBytes& bytes, LoadedModel& loaded) {
  MemoryDemand demand = DemandOf(loaded.config, options);
  demand.pinned_bytes = bytes.pinned_bytes;
  demand.all_bytes = bytes.all_bytes;
  // All or none, unless:
  demand.floor_bytes = bytes.all_bytes - bytes.pinned_bytes;
  auto table = MakeExpertTable(loaded.config, index);
  std::unique_ptr<experts::ExpertStore> store;
  experts::WarmOptions warm;
  RemoteStore remote;
  experts::PoolOptions pool;
  std::optional<experts::ExpertTable> copies;
  if (table.ok()) {
    ASSIGN_OR_RETURN(pool, PoolRules(options.tiers, *table));
    ASSIGN_OR_RETURN(copies, CopyTable(files, options, *table));
    store = MakeStore(files, index, *table, copies.has_value());
    warm.max_in_flight = ReadsInFlight(options.tiers, *store);
    demand.experts_bytes = table->total_bytes();
    demand.floor_bytes = experts::ExpertCache::FloorBytes(*table);
    if (copies) demand.floor_bytes += experts::ExpertCache::FloorBytes(*copies);
    demand.staging_bytes =
        experts::WarmFetcher::StagingBytes(*store, *table, warm);
    ASSIGN_OR_RETURN(remote, OpenRemote(*store));
    demand.staging_bytes += remote.memory_bytes;
  }
  const auto plan =
      PlanMemory(demand, options.tiers.ram_bytes, ReadMemoryInfo());
  if (!plan.ok()) return table.ok() ? plan.status() : table.status();
  loaded.plan = *plan;
  // All fit, but not all are here: it begins with those that are called.
  if (!remote.is_staged && table->num_experts() > 0) loaded.plan.tiered = true;
  const bool fills = !loaded.plan.tiered && table.ok() &&
                     table->num_experts() > 0 &&
                     table->total_bytes() >=
                         options.tiers.load_behind_bytes.value_or(UINT64_MAX) &&
                     demand.staging_bytes <= loaded.plan.spare_bytes();
  if (fills) loaded.plan.tiered = true;
  if (options.tiers.cache_bytes && table.ok() && table->num_experts() > 0) {
    loaded.plan.tiered = true;
    loaded.plan.cache_bytes = *options.tiers.cache_bytes;
  }
  if (!loaded.plan.tiered) return {};
  warm.direct = ReadsDirectly(options.tiers, *store, remote);
  auto opened = io::OpenReadEngine(
      {.depth = 3 * warm.max_in_flight, .allow_uring = options.tiers.io_uring});
  ASSIGN_OR_RETURN(auto warm_fetcher,
                   experts::WarmFetcher::Create(
                       std::move(store), std::move(opened.engine), warm));
  std::unique_ptr<experts::ExpertFetcher> fetcher;
  if (remote.files.empty()) {
    fetcher = std::move(warm_fetcher);
  } else {
    fetcher = std::make_unique<experts::ColdFetcher>(std::move(warm_fetcher),
                                                     std::move(remote.files));
  }
  ASSIGN_OR_RETURN(loaded.tiers, experts::ExpertTiers::Create(
                                     std::move(*table), std::move(fetcher),
                                     {.budget_bytes = loaded.plan.cache_bytes,
                                      .policy = options.tiers.policy,
                                      .pool = std::move(pool),
                                      .populate_ahead = true},
                                     std::move(copies)));
  if (fills) loaded.tiers->FillBehind();
  return {};
}

}  // namespace muster::runtime
