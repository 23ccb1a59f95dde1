// A write as a client of another protocol states it: fields, a mask and transforms, each apart. The
// server makes these from the requests it receives. They compile to the same intents as the calls
// of this library, so both mean the same.

internal import OndolEngine

/// One write of a commit that a client requested.
package struct ClientWrite: Sendable {
  /// What happens to the document's fields.
  package enum Change: Sendable {
    /// The document has exactly these fields.
    case replace([String: Value])
    /// Each place in the mask gets its value in the fields. A place that they lack is removed.
    case patch([String: Value], mask: [[String]])
    /// The document is deleted.
    case delete
    /// Nothing changes. The commit only checks the condition.
    case verify
  }

  /// What must hold before the write.
  package enum Condition: Sendable {
    case none
    case exists(Bool)
    /// The document last changed at this time.
    case updated(at: Timestamp)
  }

  /// A change of one field that depends on what is stored, or on the commit.
  package struct Transform: Sendable {
    package let path: [String]
    let value: FieldValue

    /// What happens to the field.
    package var operation: FieldValue.Operation { value.operation }

    /// - Parameters:
    ///   - path: the names that lead to the field.
    ///   - value: an instruction; not a delete.
    package init(path: [String], _ value: FieldValue) {
      self.path = path
      self.value = value
    }
  }

  package let path: DocumentPath
  package let change: Change
  package let transforms: [Transform]
  package let condition: Condition

  package init(
    path: DocumentPath, _ change: Change, transforms: [Transform] = [],
    condition: Condition = .none
  ) {
    self.path = path
    self.change = change
    self.transforms = transforms
    self.condition = condition
  }

  /// The contents that the write's values name, each once.
  package var contents: [ExchangedContent] {
    var fields: [String: Value] = [:]
    switch change {
    case .replace(let written), .patch(let written, _): fields["change"] = .map(written)
    case .delete, .verify: break
    }
    for (place, transform) in transforms.enumerated() {
      if case .arrayUnion(let values) = transform.operation {
        fields["\(place)"] = .array(values)
      }
    }
    return fields.exchangedContents
  }

  /// Whether the write only checks its condition.
  package var isVerify: Bool { if case .verify = change { true } else { false } }

  /// The same write, under another condition.
  package func when(_ condition: Condition) -> ClientWrite {
    ClientWrite(path: path, change, transforms: transforms, condition: condition)
  }

  /// Whether the write leaves no document.
  var isDelete: Bool { if case .delete = change { true } else { false } }

  /// The compiled write, checked like the calls of this library.
  ///
  /// Throws `.invalidArgument`, naming the document and the field.
  func compiled() throws(DatabaseError) -> DocumentWrite {
    do throws(DatabaseError) {
      var intent =
        switch change {
        case .replace(let fields): try WriteCompiler.set(FieldInput(Value.map(fields)))
        case .patch(let fields, let mask): try WriteCompiler.patch(fields, at: mask)
        case .delete: WriteCompiler.delete()
        case .verify: WriteIntent(change: .keep)
        }
      intent.transforms = try WriteCompiler.transforms(
        transforms.map { ($0.path, $0.value.operation) })
      intent.precondition =
        switch condition {
        case .none: .none
        case .exists(let exists): .exists(exists)
        case .updated(let time): .updateTime(time)
        }
      return DocumentWrite(path: path, intent: intent)
    } catch {
      throw error.at(path: path.name)
    }
  }
}
