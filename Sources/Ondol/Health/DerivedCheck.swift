// Whether every derived content belongs to one that is stored, and is held by the row that says so:
// otherwise it would stay for ever, or go while it is needed. In steps, as HolderCheck.

internal import OndolEngine

/// A check of the rows of derived contents, between two steps.
struct DerivedCheck: SteppedCheck {
  private let rows: Rows
  /// The last key of the step before.
  private var last: [UInt8]?
  private var findings: [Finding] = []
  private(set) var isDone = false

  private static let stepCount = 256

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// What was found since it was asked last.
  mutating func takeFindings() -> [Finding] {
    defer { findings = [] }
    return findings
  }

  /// Does some more. Blocks the thread while blocks are read from disk.
  mutating func step() {
    do throws(DatabaseError) {
      try walkSome()
    } catch {
      findings.append(Finding(error, .holder))
      isDone = true
    }
  }

  private mutating func walkSome() throws(DatabaseError) {
    var range = KeyRange(prefix: DerivedRows.keyspace.prefix)
    if let last { range.lower = last + [0] }
    var walk = RangeWalk(rows, [range])
    for _ in 0..<Self.stepCount {
      guard try walk.next() else {
        isDone = true
        return
      }
      let key = walk.cursor.key.array
      let value = try walk.value.array
      last = key
      do throws(DatabaseError) {
        try check(key, value)
      } catch {
        findings.append(Finding(error, .holder))
      }
    }
  }

  private mutating func check(_ key: [UInt8], _ value: [UInt8]) throws(DatabaseError) {
    let (parent, name) = try DerivedRows.parse(key.bytes)
    let child = try DerivedRows.child(value.bytes)
    if try rows.row(ContentKey.location(parent)) == nil {
      note("\"\(name)\" was derived from a content that is not stored: \(parent.hex)")
    }
    if try rows.row(ContentKey.holder(child.digest, key)) == nil {
      note("\"\(name)\" was derived from \(parent.hex), and nothing holds it: \(child.digest.hex)")
    }
  }

  private mutating func note(_ message: String) {
    findings.append(Finding(.error, .holder, message, hint: Finding.damageHint))
  }
}
