// RocksDB: how it is opened, and `DB::Get` into one pinned slice, so that a value in the block
// cache is read in place.

#ifdef PEER_ROCKSDB

#include "LogStructured.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_buffer_manager.h>

namespace {

struct RocksDB {
  using Iterator = rocksdb::Iterator;
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;
  using Value = rocksdb::PinnableSlice;
  using WriteBatch = rocksdb::WriteBatch;
  using WriteOptions = rocksdb::WriteOptions;

  std::unique_ptr<rocksdb::DB> database;
  rocksdb::ReadOptions reading;
  rocksdb::ColumnFamilyHandle *family = nullptr;

  RocksDB() = default;
  RocksDB(RocksDB &&) = default;
  ~RocksDB() {
    if (!database) return;
    rocksdb::CancelAllBackgroundWork(database.get(), true);
    database->Close();
  }

  Status Get(const Slice &key, Value *value) { return database->Get(reading, family, key, value); }
  static void Release(Value *value) { value->Reset(); }

  Status Settle() {
    const Status status = database->Flush(rocksdb::FlushOptions());
    if (!status.ok()) return status;
    return database->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr);
  }
};

}  // namespace

char *OpenRocksDB(const char *path, size_t cache_bytes, bool cache_is_all, lsm_peer **peer) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kLZ4Compression;
  options.write_buffer_size = 64 << 20;
  options.max_background_jobs = 2;
  if (cache_is_all) {
    // Memtables, indexes and filters within the one cache, as Ondol's are.
    table.cache_index_and_filter_blocks = true;
    table.pin_l0_filter_and_index_blocks_in_cache = true;
    options.write_buffer_size = cache_bytes / 4;
    options.write_buffer_manager =
        std::make_shared<rocksdb::WriteBufferManager>(cache_bytes / 2, table.block_cache);
    options.max_open_files = 256;
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB *database = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, &database);
  if (!status.ok()) return Message(status);
  RocksDB made;
  made.database.reset(database);
  made.family = database->DefaultColumnFamily();
  *peer = new LogStructured<RocksDB>(std::move(made));
  return nullptr;
}

std::string RocksDBVersion() {
  return std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
         std::to_string(ROCKSDB_PATCH);
}

#endif
