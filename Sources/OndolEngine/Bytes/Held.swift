// Spans of bytes that an object keeps alive by means the compiler does not see: a memtable's arena,
// a block that a cursor has pinned.

/// `span` as borrowed from `owner`, which must keep its bytes alive and unchanged as long as
/// `owner` itself is not mutated.
@inline(__always)
@_lifetime(borrow owner)
func held<Owner: ~Copyable & ~Escapable>(_ span: RawSpan, by owner: borrowing Owner) -> RawSpan {
  // Safe when the caller keeps the promise above; every call is in a cursor over memory that it
  // holds.
  unsafe _overrideLifetime(span, borrowing: owner)
}
