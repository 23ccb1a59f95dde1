// Tells AddressSanitizer of memory that an allocator of ours holds free, so that it finds reads of
// freed blocks as it does those of any other memory. Without it these calls do nothing.

internal import COndol

/// Has every access to the bytes reported, until they are unpoisoned.
func poison(_ memory: UnsafeMutableRawPointer, _ count: Int) {
  unsafe ondol_poison(memory, count)
}

/// Allows access to the bytes again.
func unpoison(_ memory: UnsafeMutableRawPointer, _ count: Int) {
  unsafe ondol_unpoison(memory, count)
}
