// Keeps the target a C target where neither LevelDB nor RocksDB is built in.

#include "CPeers.h"
