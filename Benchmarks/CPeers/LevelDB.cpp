// LevelDB: how it is opened, and `DB::Get` into one string that is used again and again.

#ifdef PEER_LEVELDB

#include "LogStructured.hpp"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

namespace {

struct LevelDB {
  using Iterator = leveldb::Iterator;
  using Slice = leveldb::Slice;
  using Status = leveldb::Status;
  using Value = std::string;
  using WriteBatch = leveldb::WriteBatch;
  using WriteOptions = leveldb::WriteOptions;

  // The database goes first, because it uses the other two until its end.
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> database;
  leveldb::ReadOptions reading;

  Status Get(const Slice &key, Value *value) { return database->Get(reading, key, value); }
  static void Release(Value *) {}

  Status Settle() {
    database->CompactRange(nullptr, nullptr);
    return Status::OK();
  }
};

}  // namespace

char *OpenLevelDB(const char *path, size_t cache_bytes, lsm_peer **peer) {
  LevelDB made;
  made.cache.reset(leveldb::NewLRUCache(cache_bytes));
  made.filter.reset(leveldb::NewBloomFilterPolicy(10));
  made.reading.verify_checksums = true;
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 20;
  options.block_cache = made.cache.get();
  options.filter_policy = made.filter.get();
  leveldb::DB *database = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, path, &database);
  if (!status.ok()) return Message(status);
  made.database.reset(database);
  *peer = new LogStructured<LevelDB>(std::move(made));
  return nullptr;
}

std::string LevelDBVersion() {
  return std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
}

#endif
