// Runs checks of rows: step after step, where waiting for a file blocks no other work. Findings are
// passed on in between, so that a check can be cancelled and uses little memory.

internal import OndolEngine

/// A check, between two of its steps.
protocol SteppedCheck: Sendable {
  var isDone: Bool { get }
  /// Findings that have not been passed on yet.
  var findings: [Finding] { get set }
  /// Runs a step. Blocks the thread while it reads files.
  mutating func step()
}

extension SteppedCheck {
  /// The findings since the last call.
  mutating func takeFindings() -> [Finding] {
    defer { findings = [] }
    return findings
  }
}

/// A check that looks at each row of a range separately.
protocol RowCheck: SteppedCheck {
  var rows: Rows { get }
  var range: KeyRange { get }
  /// The kind of findings about unreadable rows.
  var kind: Finding.Kind { get }
  /// The last key of the previous step.
  var last: [UInt8]? { get set }
  var isDone: Bool { get set }
  /// Checks the current row of the walk.
  mutating func check(_ row: borrowing RangeWalk) throws(DatabaseError)
}

/// Rows in one step of a check.
private let stepCount = 256

extension RowCheck {
  mutating func step() {
    do throws(DatabaseError) {
      try walkSome()
    } catch {
      findings.append(Finding(error, kind))
      isDone = true
    }
  }

  private mutating func walkSome() throws(DatabaseError) {
    var range = range
    if let last { range.lower = last + [0] }
    var walk = RangeWalk(rows, [range])
    for _ in 0..<stepCount {
      guard try walk.next() else {
        isDone = true
        return
      }
      last = walk.cursor.key.array
      do throws(DatabaseError) {
        try check(walk)
      } catch {
        findings.append(Finding(error, kind))
      }
    }
  }
}

extension Snapshot {
  /// Runs all steps of `check`, and adds its findings to `findings`.
  ///
  /// - Parameter note: receives the check after each step.
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
