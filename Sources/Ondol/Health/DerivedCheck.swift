// Checks whether every derived content belongs to a stored one, and whether its row holds it:
// otherwise it would stay for ever, or be removed while it is needed. It runs in steps, like
// HolderCheck.

internal import OndolEngine

/// A check of the rows of derived contents, between two steps.
struct DerivedCheck: RowCheck {
  let rows: Rows
  let range = KeyRange(prefix: DerivedRows.keyspace.prefix)
  let kind = Finding.Kind.holder
  var last: [UInt8]?
  var findings: [Finding] = []
  var isDone = false

  init(_ rows: Rows) {
    self.rows = rows
  }

  mutating func check(_ row: borrowing RangeWalk) throws(DatabaseError) {
    let key = row.cursor.key.array
    let (parent, name) = try DerivedRows.parse(key.bytes)
    let child = try DerivedRows.child(try row.value)
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
