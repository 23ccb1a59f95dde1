// How a check of rows is run: step after step where waiting for a file holds nobody up, with what
// was found handed on in between, so that it can be cancelled and holds little in memory.

internal import OndolEngine

/// A check, between two of its steps.
protocol SteppedCheck: Sendable {
  var isDone: Bool { get }
  /// What was found and is yet to be handed on.
  var findings: [Finding] { get set }
  /// Does some more. Blocks the thread while files are read.
  mutating func step()
}

extension SteppedCheck {
  /// What was found since it was asked last.
  mutating func takeFindings() -> [Finding] {
    defer { findings = [] }
    return findings
  }
}

/// A check that looks at each row of a range by itself.
protocol RowCheck: SteppedCheck {
  var rows: Rows { get }
  var range: KeyRange { get }
  /// What findings are about where a row cannot be read.
  var kind: Finding.Kind { get }
  /// The last key of the step before.
  var last: [UInt8]? { get set }
  var isDone: Bool { get set }
  /// Looks at the row that the walk is at.
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
