// Prefetching memory. A dependent load from memory costs 150 ns on a server, and a get consists
// mostly of such loads. Two prefetches issued together cost as much as one.

internal import COndol

/// Asks the processor to fetch the cache line at `address`. It has no other effect, whatever the
/// address.
@inline(__always)
func prefetch(_ address: UnsafeRawPointer) {
  unsafe ondol_prefetch(address)
}
