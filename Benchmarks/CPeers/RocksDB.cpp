// RocksDB behind coarse calls: `DB::Get` into one pinned slice, so that a value in the block
// cache is read in place. The library's own C interface allocates a slice for each get.

#ifdef PEER_ROCKSDB

#include "CPeers.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <memory>
#include <string>

struct rocksdb_peer {
  std::unique_ptr<rocksdb::DB> database;
  rocksdb::ReadOptions reading;
};

namespace {

char *Message(const rocksdb::Status &status) {
  return status.ok() ? nullptr : strdup(status.ToString().c_str());
}

rocksdb::Slice Key(const peer_keys &keys, size_t index) {
  return rocksdb::Slice(
      reinterpret_cast<const char *>(keys.bytes) + index * keys.stride + keys.offset, keys.length);
}

rocksdb::Slice Value(const peer_rows &rows, size_t index) {
  return rocksdb::Slice(
      reinterpret_cast<const char *>(rows.values) + index * rows.value_length, rows.value_length);
}

}  // namespace

char *rocksdb_peer_open(const char *path, size_t cache_bytes, rocksdb_peer **peer) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kLZ4Compression;
  options.write_buffer_size = 64 << 20;
  options.max_background_jobs = 2;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB *database = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, path, &database);
  if (!status.ok()) return Message(status);
  auto made = std::make_unique<rocksdb_peer>();
  made->database.reset(database);
  *peer = made.release();
  return nullptr;
}

char *rocksdb_peer_write(rocksdb_peer *peer, peer_rows rows, int synced) {
  rocksdb::WriteOptions writing;
  writing.sync = synced;
  rocksdb::WriteBatch batch;
  for (size_t index = 0; index < rows.keys.count; index += 1) {
    batch.Put(Key(rows.keys, index), Value(rows, index));
  }
  return Message(peer->database->Write(writing, &batch));
}

char *rocksdb_peer_write_each(
    rocksdb_peer *peer, peer_rows rows, int synced, uint64_t *nanoseconds) {
  rocksdb::WriteOptions writing;
  writing.sync = synced;
  for (size_t index = 0; index < rows.keys.count; index += 1) {
    uint64_t start = peer_now();
    rocksdb::Status status =
        peer->database->Put(writing, Key(rows.keys, index), Value(rows, index));
    if (!status.ok()) return Message(status);
    nanoseconds[index] = peer_now() - start;
  }
  return nullptr;
}

char *rocksdb_peer_get(rocksdb_peer *peer, peer_keys keys, uint64_t *checksum) {
  rocksdb::ColumnFamilyHandle *family = peer->database->DefaultColumnFamily();
  rocksdb::PinnableSlice value;
  uint64_t folded = 0;
  for (size_t index = 0; index < keys.count; index += 1) {
    rocksdb::Status status =
        peer->database->Get(peer->reading, family, Key(keys, index), &value);
    if (!status.ok()) return Message(status);
    folded = peer_fold(folded, peer_sum(value.data(), value.size()));
    value.Reset();
  }
  *checksum = folded;
  return nullptr;
}

char *rocksdb_peer_scan(rocksdb_peer *peer, uint64_t *count, uint64_t *checksum) {
  std::unique_ptr<rocksdb::Iterator> iterator(peer->database->NewIterator(peer->reading));
  uint64_t folded = 0;
  uint64_t found = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    rocksdb::Slice key = iterator->key();
    rocksdb::Slice value = iterator->value();
    folded = peer_fold(folded, peer_sum(key.data(), key.size()));
    folded = peer_fold(folded, peer_sum(value.data(), value.size()));
    found += 1;
  }
  *count = found;
  *checksum = folded;
  return Message(iterator->status());
}

char *rocksdb_peer_seek(rocksdb_peer *peer, peer_keys keys, size_t limit, uint64_t *checksum) {
  uint64_t folded = 0;
  for (size_t index = 0; index < keys.count; index += 1) {
    std::unique_ptr<rocksdb::Iterator> iterator(peer->database->NewIterator(peer->reading));
    size_t rows = 0;
    for (iterator->Seek(Key(keys, index)); rows < limit && iterator->Valid(); rows += 1) {
      rocksdb::Slice key = iterator->key();
      rocksdb::Slice value = iterator->value();
      folded = peer_fold(folded, peer_sum(key.data(), key.size()));
      folded = peer_fold(folded, peer_sum(value.data(), value.size()));
      if (rows + 1 < limit) iterator->Next();
    }
    if (!iterator->status().ok()) return Message(iterator->status());
  }
  *checksum = folded;
  return nullptr;
}

char *rocksdb_peer_settle(rocksdb_peer *peer) {
  rocksdb::Status status = peer->database->Flush(rocksdb::FlushOptions());
  if (!status.ok()) return Message(status);
  return Message(
      peer->database->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
}

void rocksdb_peer_close(rocksdb_peer *peer) {
  rocksdb::CancelAllBackgroundWork(peer->database.get(), true);
  peer->database->Close();
  delete peer;
}

const char *rocksdb_peer_version(void) {
  static const std::string version = std::to_string(ROCKSDB_MAJOR) + "." +
                                     std::to_string(ROCKSDB_MINOR) + "." +
                                     std::to_string(ROCKSDB_PATCH);
  return version.c_str();
}

#endif
