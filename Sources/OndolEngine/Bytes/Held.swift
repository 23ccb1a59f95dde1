// Spans of bytes that an object keeps alive in a way that the compiler cannot see, such as a
// memtable's arena or a block that a cursor has pinned.

/// `span` as borrowed from `owner`. The owner must keep the bytes alive and unchanged as long as it
/// is not mutated itself.
@inline(__always)
@_lifetime(borrow owner)
func held<Owner: ~Copyable & ~Escapable>(_ span: RawSpan, by owner: borrowing Owner) -> RawSpan {
  // Safe if the caller keeps the promise above. Every caller is a cursor over memory that it holds.
  unsafe _overrideLifetime(span, borrowing: owner)
}
