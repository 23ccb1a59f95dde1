// Tells AddressSanitizer which memory an allocator of ours considers free, so that it finds reads
// of freed blocks as it does for any other memory. Without AddressSanitizer these calls do nothing.

internal import COndol

/// Makes every access to the bytes an error until they are unpoisoned.
func poison(_ memory: UnsafeMutableRawPointer, _ count: Int) {
  unsafe ondol_poison(memory, count)
}

/// Allows access to the bytes again.
func unpoison(_ memory: UnsafeMutableRawPointer, _ count: Int) {
  unsafe ondol_unpoison(memory, count)
}
