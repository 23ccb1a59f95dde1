// How a check of rows is run: step after step where waiting for a file holds nobody up, with what
// was found handed on in between, so that it can be cancelled and holds little in memory.

internal import OndolEngine

/// A check, between two of its steps.
protocol SteppedCheck: Sendable {
  var isDone: Bool { get }
  mutating func step()
  /// What was found since it was asked last.
  mutating func takeFindings() -> [Finding]
}

extension Snapshot {
  /// Runs all steps of `check`, and adds what it finds to `findings`.
  ///
  /// - Parameter note: gets the check after each step.
  func run<Check: SteppedCheck>(
    _ check: inout Check, _ findings: inout FindingList, note: (inout Check) -> Void = { _ in }
  ) async throws(DatabaseError) {
    while !check.isDone {
      try refuseWhenCancelled()
      let previous = check
      check = await readBlocking {
        var next = previous
        next.step()
        return next
      }
      findings.append(check.takeFindings())
      note(&check)
    }
  }
}
