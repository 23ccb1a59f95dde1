// Asking for memory before it is needed. A dependent load from memory costs 150 ns on a server, and
// a get is little else than such loads; two that are asked for together cost as much as one.

internal import COndol

/// Asks the processor to fetch the cache line at `address`. Has no other effect, whatever the
/// address.
@inline(__always)
func prefetch(_ address: UnsafeRawPointer) {
  unsafe ondol_prefetch(address)
}
