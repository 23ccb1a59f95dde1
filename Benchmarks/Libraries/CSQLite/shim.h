// SQLite, and every library with its interface. Two such libraries in one program would use each
// other's functions, so only one can be linked. The other is loaded, and called through this table.

#include <dlfcn.h>
#include <sqlite3.h>
#include <stdbool.h>

// Every call of the engine suite's adapter. All of them are in SQLite 3.15, which SQLCipher 3.4 is.
#define SQLITE_CALLS(CALL) \
  CALL(libversion) CALL(open) CALL(close) CALL(exec) CALL(errmsg) CALL(prepare_v2) CALL(finalize) \
  CALL(step) CALL(reset) CALL(bind_blob) CALL(bind_int64) CALL(column_blob) CALL(column_bytes) \
  CALL(column_text)

struct sqlite_calls {
#define SQLITE_CALL(name) __typeof__(&sqlite3_##name) name;
  SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
};

// The calls of the linked SQLite.
static inline struct sqlite_calls sqlite_linked_calls(void) {
  struct sqlite_calls calls = {
#define SQLITE_CALL(name) .name = sqlite3_##name,
      SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
  };
  return calls;
}

// The calls of a library from dlopen. False if it lacks one.
static inline bool sqlite_loaded_calls(void *library, struct sqlite_calls *calls) {
#define SQLITE_CALL(name) \
  if (!(calls->name = (__typeof__(calls->name))dlsym(library, "sqlite3_" #name))) return false;
  SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
  return true;
}
