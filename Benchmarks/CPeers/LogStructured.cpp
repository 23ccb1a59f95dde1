// The C side of LevelDB and RocksDB: one set of functions, with the library as a parameter where
// a database is opened. Each call is one virtual call around a loop.

#include "LogStructured.hpp"

char *lsm_peer_open(
    enum lsm_library library, const char *path, size_t cache_bytes, bool cache_is_all,
    lsm_peer **peer) {
  (void)cache_is_all;
  switch (library) {
#ifdef PEER_LEVELDB
    case LSM_LEVELDB: return OpenLevelDB(path, cache_bytes, peer);
#endif
#ifdef PEER_ROCKSDB
    case LSM_ROCKSDB: return OpenRocksDB(path, cache_bytes, cache_is_all, peer);
#endif
    default: return strdup("not in this build");
  }
}

const char *lsm_peer_version(enum lsm_library library) {
  static std::string version;
#ifdef PEER_LEVELDB
  if (library == LSM_LEVELDB) version = LevelDBVersion();
#endif
#ifdef PEER_ROCKSDB
  if (library == LSM_ROCKSDB) version = RocksDBVersion();
#endif
  return version.c_str();
}

char *lsm_peer_write(lsm_peer *peer, peer_rows rows, bool synced) {
  return peer->Write(rows, synced);
}

char *lsm_peer_write_each(lsm_peer *peer, peer_rows rows, bool synced, uint64_t *nanoseconds) {
  return peer->WriteEach(rows, synced, nanoseconds);
}

char *lsm_peer_get(lsm_peer *peer, peer_keys keys, uint64_t *checksum) {
  return peer->Get(keys, checksum);
}

char *lsm_peer_scan(lsm_peer *peer, uint64_t *count, uint64_t *checksum) {
  return peer->Scan(count, checksum);
}

char *lsm_peer_seek(lsm_peer *peer, peer_keys keys, size_t limit, uint64_t *checksum) {
  return peer->Seek(keys, limit, checksum);
}

char *lsm_peer_settle(lsm_peer *peer) { return peer->Settle(); }

void lsm_peer_close(lsm_peer *peer) { delete peer; }
