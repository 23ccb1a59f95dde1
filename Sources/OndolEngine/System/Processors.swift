// The number of processors, which limits how many threads can work at once.

internal import COndol

/// The processors that this process may use.
package enum Processors {
  /// Their number at the first access.
  package static let count = Int(ondol_processor_count())
}
