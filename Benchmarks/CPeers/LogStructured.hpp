// LevelDB and RocksDB behind coarse calls. The two have one C++ interface but for their namespace,
// so the loops are written once, over a `Library` that names the types and what differs: opening,
// getting and settling. Their own C interfaces copy or allocate for each value; these loops cost
// what a C++ program would pay.

#pragma once

#include "CPeers.h"

#include <memory>
#include <string>

/// An open database of either library.
struct lsm_peer {
  virtual ~lsm_peer() = default;
  virtual char *Write(const peer_rows &rows, bool synced) = 0;
  virtual char *WriteEach(const peer_rows &rows, bool synced, uint64_t *nanoseconds) = 0;
  virtual char *Get(const peer_keys &keys, uint64_t *checksum) = 0;
  virtual char *Scan(uint64_t *count, uint64_t *checksum) = 0;
  virtual char *Seek(const peer_keys &keys, size_t limit, uint64_t *checksum) = 0;
  virtual char *Settle() = 0;
};

#ifdef PEER_LEVELDB
char *OpenLevelDB(const char *path, size_t cache_bytes, lsm_peer **peer);
std::string LevelDBVersion();
#endif
#ifdef PEER_ROCKSDB
char *OpenRocksDB(const char *path, size_t cache_bytes, bool cache_is_all, lsm_peer **peer);
std::string RocksDBVersion();
#endif

template <typename Status>
char *Message(const Status &status) {
  return status.ok() ? nullptr : strdup(status.ToString().c_str());
}

template <typename Library>
class LogStructured : public lsm_peer {
  using Slice = typename Library::Slice;
  using Status = typename Library::Status;
  using Iterator = typename Library::Iterator;

 public:
  explicit LogStructured(Library &&library) : library_(std::move(library)) {}

  char *Write(const peer_rows &rows, bool synced) override {
    typename Library::WriteBatch batch;
    for (size_t index = 0; index < rows.keys.count; index += 1) {
      batch.Put(Key(rows.keys, index), Value(rows, index));
    }
    return Message(library_.database->Write(Writing(synced), &batch));
  }

  char *WriteEach(const peer_rows &rows, bool synced, uint64_t *nanoseconds) override {
    const auto writing = Writing(synced);
    for (size_t index = 0; index < rows.keys.count; index += 1) {
      const uint64_t start = peer_now();
      const Status status =
          library_.database->Put(writing, Key(rows.keys, index), Value(rows, index));
      if (!status.ok()) return Message(status);
      nanoseconds[index] = peer_now() - start;
    }
    return nullptr;
  }

  char *Get(const peer_keys &keys, uint64_t *checksum) override {
    // One buffer that is used again and again.
    typename Library::Value value;
    uint64_t folded = 0;
    for (size_t index = 0; index < keys.count; index += 1) {
      const Status status = library_.Get(Key(keys, index), &value);
      if (!status.ok()) return Message(status);
      folded = peer_fold(folded, peer_sum(value.data(), value.size()));
      Library::Release(&value);
    }
    *checksum = folded;
    return nullptr;
  }

  char *Scan(uint64_t *count, uint64_t *checksum) override {
    const std::unique_ptr<Iterator> iterator(library_.database->NewIterator(library_.reading));
    *count = 0;
    *checksum = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      *checksum = FoldRow(*checksum, *iterator);
      *count += 1;
    }
    return Message(iterator->status());
  }

  char *Seek(const peer_keys &keys, size_t limit, uint64_t *checksum) override {
    *checksum = 0;
    for (size_t index = 0; index < keys.count; index += 1) {
      const std::unique_ptr<Iterator> iterator(library_.database->NewIterator(library_.reading));
      size_t rows = 0;
      for (iterator->Seek(Key(keys, index)); rows < limit && iterator->Valid(); rows += 1) {
        *checksum = FoldRow(*checksum, *iterator);
        if (rows + 1 < limit) iterator->Next();
      }
      if (!iterator->status().ok()) return Message(iterator->status());
    }
    return nullptr;
  }

  char *Settle() override { return Message(library_.Settle()); }

 private:
  static typename Library::WriteOptions Writing(bool synced) {
    typename Library::WriteOptions writing;
    writing.sync = synced;
    return writing;
  }

  static Slice Key(const peer_keys &keys, size_t index) {
    return Slice(
        reinterpret_cast<const char *>(keys.bytes) + index * keys.stride + keys.offset,
        keys.length);
  }

  static Slice Value(const peer_rows &rows, size_t index) {
    return Slice(
        reinterpret_cast<const char *>(rows.values) + index * rows.value_length,
        rows.value_length);
  }

  static uint64_t FoldRow(uint64_t folded, const Iterator &iterator) {
    const Slice key = iterator.key();
    const Slice value = iterator.value();
    folded = peer_fold(folded, peer_sum(key.data(), key.size()));
    return peer_fold(folded, peer_sum(value.data(), value.size()));
  }

  Library library_;
};
