// LevelDB behind coarse calls: `DB::Get` into one string that is used again and again, as a C++
// program would. The library's own C interface copies each value once more and allocates for it.

#ifdef PEER_LEVELDB

#include "CPeers.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <string>

struct leveldb_peer {
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> database;
  leveldb::ReadOptions reading;
};

namespace {

char *Message(const leveldb::Status &status) {
  return status.ok() ? nullptr : strdup(status.ToString().c_str());
}

leveldb::Slice Key(const peer_keys &keys, size_t index) {
  return leveldb::Slice(
      reinterpret_cast<const char *>(keys.bytes) + index * keys.stride + keys.offset, keys.length);
}

leveldb::Slice Value(const peer_rows &rows, size_t index) {
  return leveldb::Slice(
      reinterpret_cast<const char *>(rows.values) + index * rows.value_length, rows.value_length);
}

}  // namespace

char *leveldb_peer_open(const char *path, size_t cache_bytes, leveldb_peer **peer) {
  auto made = std::make_unique<leveldb_peer>();
  made->cache.reset(leveldb::NewLRUCache(cache_bytes));
  made->filter.reset(leveldb::NewBloomFilterPolicy(10));
  made->reading.verify_checksums = true;
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 20;
  options.block_cache = made->cache.get();
  options.filter_policy = made->filter.get();
  leveldb::DB *database = nullptr;
  leveldb::Status status = leveldb::DB::Open(options, path, &database);
  if (!status.ok()) return Message(status);
  made->database.reset(database);
  *peer = made.release();
  return nullptr;
}

char *leveldb_peer_write(leveldb_peer *peer, peer_rows rows, int synced) {
  leveldb::WriteOptions writing;
  writing.sync = synced;
  leveldb::WriteBatch batch;
  for (size_t index = 0; index < rows.keys.count; index += 1) {
    batch.Put(Key(rows.keys, index), Value(rows, index));
  }
  return Message(peer->database->Write(writing, &batch));
}

char *leveldb_peer_write_each(
    leveldb_peer *peer, peer_rows rows, int synced, uint64_t *nanoseconds) {
  leveldb::WriteOptions writing;
  writing.sync = synced;
  for (size_t index = 0; index < rows.keys.count; index += 1) {
    uint64_t start = peer_now();
    leveldb::Status status =
        peer->database->Put(writing, Key(rows.keys, index), Value(rows, index));
    if (!status.ok()) return Message(status);
    nanoseconds[index] = peer_now() - start;
  }
  return nullptr;
}

char *leveldb_peer_get(leveldb_peer *peer, peer_keys keys, uint64_t *checksum) {
  std::string value;
  uint64_t folded = 0;
  for (size_t index = 0; index < keys.count; index += 1) {
    leveldb::Status status = peer->database->Get(peer->reading, Key(keys, index), &value);
    if (!status.ok()) return Message(status);
    folded = peer_fold(folded, peer_sum(value.data(), value.size()));
  }
  *checksum = folded;
  return nullptr;
}

char *leveldb_peer_scan(leveldb_peer *peer, uint64_t *count, uint64_t *checksum) {
  std::unique_ptr<leveldb::Iterator> iterator(peer->database->NewIterator(peer->reading));
  uint64_t folded = 0;
  uint64_t found = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    leveldb::Slice key = iterator->key();
    leveldb::Slice value = iterator->value();
    folded = peer_fold(folded, peer_sum(key.data(), key.size()));
    folded = peer_fold(folded, peer_sum(value.data(), value.size()));
    found += 1;
  }
  *count = found;
  *checksum = folded;
  return Message(iterator->status());
}

char *leveldb_peer_seek(leveldb_peer *peer, peer_keys keys, size_t limit, uint64_t *checksum) {
  uint64_t folded = 0;
  for (size_t index = 0; index < keys.count; index += 1) {
    std::unique_ptr<leveldb::Iterator> iterator(peer->database->NewIterator(peer->reading));
    size_t rows = 0;
    for (iterator->Seek(Key(keys, index)); rows < limit && iterator->Valid(); rows += 1) {
      leveldb::Slice key = iterator->key();
      leveldb::Slice value = iterator->value();
      folded = peer_fold(folded, peer_sum(key.data(), key.size()));
      folded = peer_fold(folded, peer_sum(value.data(), value.size()));
      if (rows + 1 < limit) iterator->Next();
    }
    if (!iterator->status().ok()) return Message(iterator->status());
  }
  *checksum = folded;
  return nullptr;
}

void leveldb_peer_settle(leveldb_peer *peer) { peer->database->CompactRange(nullptr, nullptr); }

void leveldb_peer_close(leveldb_peer *peer) {
  peer->database.reset();
  delete peer;
}

const char *leveldb_peer_version(void) {
  static const std::string version = std::to_string(leveldb::kMajorVersion) + "." +
                                     std::to_string(leveldb::kMinorVersion);
  return version.c_str();
}

#endif
