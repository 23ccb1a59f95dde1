// How many processors there are: as many threads can work at once.

internal import COndol

/// The processors that this process may run on.
package enum Processors {
  /// As many as there were when it was first asked.
  package static let count = Int(ondol_processor_count())
}
