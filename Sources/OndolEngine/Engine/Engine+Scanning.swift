// What decides whether a scan is read in parts.

extension Engine {
  /// Documents of a part of a scan, at least, that is read beside other parts.
  package var smallestScanPart: Int { max(1, storage.options.smallestScanPart) }
  /// Parts of a scan that are read at once.
  package var scanWidth: Int { storage.options.scanWidth ?? Processors.count }
}
