// WiredTiger's methods are function pointers inside structs, many of them variadic, which Swift
// cannot call. These wrappers are inlined and add nothing to the cost of a C program.

#include <wiredtiger.h>

static inline int wt_open_session(WT_CONNECTION *connection, WT_SESSION **session) {
  return connection->open_session(connection, NULL, NULL, session);
}

static inline int wt_close(WT_CONNECTION *connection) {
  return connection->close(connection, NULL);
}

static inline int wt_create(WT_SESSION *session, const char *name, const char *config) {
  return session->create(session, name, config);
}

static inline int wt_open_cursor(
    WT_SESSION *session, const char *name, const char *config, WT_CURSOR **cursor) {
  return session->open_cursor(session, name, NULL, config, cursor);
}

static inline int wt_begin(WT_SESSION *session) {
  return session->begin_transaction(session, NULL);
}

static inline int wt_commit(WT_SESSION *session) {
  return session->commit_transaction(session, NULL);
}

static inline int wt_checkpoint(WT_SESSION *session) { return session->checkpoint(session, NULL); }

static inline int wt_cursor_close(WT_CURSOR *cursor) { return cursor->close(cursor); }

static inline int wt_insert(
    WT_CURSOR *cursor, const void *key, size_t key_length, const void *value, size_t value_length) {
  WT_ITEM key_item = {.data = key, .size = key_length};
  WT_ITEM value_item = {.data = value, .size = value_length};
  cursor->set_key(cursor, &key_item);
  cursor->set_value(cursor, &value_item);
  return cursor->insert(cursor);
}

static inline int wt_search(WT_CURSOR *cursor, const void *key, size_t length, WT_ITEM *value) {
  WT_ITEM item = {.data = key, .size = length};
  cursor->set_key(cursor, &item);
  int code = cursor->search(cursor);
  return code == 0 ? cursor->get_value(cursor, value) : code;
}

/// Moves to the first row at or after the key; WT_NOTFOUND if there is none.
static inline int wt_seek(WT_CURSOR *cursor, const void *key, size_t length) {
  WT_ITEM item = {.data = key, .size = length};
  int side = 0;
  cursor->set_key(cursor, &item);
  int code = cursor->search_near(cursor, &side);
  if (code == 0 && side < 0) return cursor->next(cursor);
  return code;
}

static inline int wt_next(WT_CURSOR *cursor) { return cursor->next(cursor); }
static inline int wt_reset(WT_CURSOR *cursor) { return cursor->reset(cursor); }

static inline int wt_row(WT_CURSOR *cursor, WT_ITEM *key, WT_ITEM *value) {
  int code = cursor->get_key(cursor, key);
  return code == 0 ? cursor->get_value(cursor, value) : code;
}
