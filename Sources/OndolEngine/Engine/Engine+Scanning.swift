// The settings that decide whether a scan is read in parts.

extension Engine {
  /// The least number of documents in a part of a scan that is read in parallel.
  package var smallestScanPart: Int { max(1, storage.options.smallestScanPart) }
  /// The number of parts of a scan that are read at once.
  package var scanWidth: Int { storage.options.scanWidth ?? Processors.count }
}
