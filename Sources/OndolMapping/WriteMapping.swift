// Converts the protocol's writes, in both directions: a document with or without a mask, a delete,
// a check of a condition, and transforms, with an update or alone.

#if Server || Sync
  package import Ondol
  package import OndolWire
  import SwiftProtobuf

  extension ValueMapping {
    /// The writes, in their order.
    ///
    /// Throws `.invalidArgument` for an invalid write.
    package func writes(_ wire: [WireWrite]) throws(DatabaseError) -> [ClientWrite] {
      var writes: [ClientWrite] = []
      writes.reserveCapacity(wire.count)
      for write in wire { writes.append(try self.write(write)) }
      return writes
    }

    package func write(_ wire: WireWrite) throws(DatabaseError) -> ClientWrite {
      let condition = try condition(wire.hasCurrentDocument ? wire.currentDocument : nil)
      switch wire.operation {
      case .update(let document):
        let path = try database.path(of: document.name)
        let fields = try fields(document.fields)
        let transforms = try transforms(wire.updateTransforms)
        guard wire.hasUpdateMask else {
          return ClientWrite(
            path: path, .replace(fields), transforms: transforms, condition: condition)
        }
        let mask = try FieldMask(wire.updateMask)
        return ClientWrite(
          path: path, .patch(fields, mask: mask.paths), transforms: transforms,
          condition: condition)
      case .delete(let name):
        return ClientWrite(path: try database.path(of: name), .delete, condition: condition)
      case .verify(let name):
        return ClientWrite(path: try database.path(of: name), .verify, condition: condition)
      case .transform(let transform):
        return ClientWrite(
          path: try database.path(of: transform.document), .patch([:], mask: []),
          transforms: try transforms(transform.fieldTransforms), condition: condition)
      case nil:
        throw DatabaseError(.invalidArgument, "a write says nothing of what it is to do")
      }
    }

    package func condition(
      _ wire: WirePrecondition?
    ) throws(DatabaseError) -> ClientWrite.Condition {
      switch wire?.conditionType {
      case .exists(let exists): .exists(exists)
      case .updateTime(let time): .updated(at: try timestamp(time))
      case nil: .none
      }
    }

    private func transforms(
      _ wire: [WireDocumentTransform.FieldTransform]
    ) throws(DatabaseError) -> [ClientWrite.Transform] {
      var transforms: [ClientWrite.Transform] = []
      for transform in wire {
        transforms.append(
          ClientWrite.Transform(
            path: try FieldPath(transform.fieldPath).names(), try instruction(transform)))
      }
      return transforms
    }

    private func instruction(
      _ wire: WireDocumentTransform.FieldTransform
    ) throws(DatabaseError) -> FieldValue {
      switch wire.transformType {
      case .setToServerValue(.requestTime): return .serverTimestamp()
      case .increment(let operand):
        return try number(operand, wire, FieldValue.increment, FieldValue.increment)
      case .maximum(let operand):
        return try number(operand, wire, FieldValue.maximum, FieldValue.maximum)
      case .minimum(let operand):
        return try number(operand, wire, FieldValue.minimum, FieldValue.minimum)
      case .appendMissingElements(let list):
        return .arrayUnion(try elements(list))
      case .removeAllFromArray(let list):
        return .arrayRemove(try elements(list))
      case .setToServerValue, nil:
        throw DatabaseError(
          .invalidArgument, "the transform is none that this server knows", field: wire.fieldPath)
      }
    }

    private func elements(
      _ list: WireArrayValue
    ) throws(DatabaseError) -> [(any FieldContent)?] {
      var elements: [(any FieldContent)?] = []
      for element in list.values { elements.append(try value(element)) }
      return elements
    }

    private func number(
      _ operand: WireValue, _ wire: WireDocumentTransform.FieldTransform,
      _ integer: (Int64) -> FieldValue, _ double: (Double) -> FieldValue
    ) throws(DatabaseError) -> FieldValue {
      switch operand.valueType {
      case .integerValue(let value): return integer(value)
      case .doubleValue(let value): return double(value)
      default:
        throw DatabaseError(
          .invalidArgument, "the transform's operand is a number", field: wire.fieldPath)
      }
    }

    /// Returns the result of a write.
    package func wire(_ answer: ClientCommit.Answer) -> WireWriteResult {
      .with {
        if let time = answer.updateTime { $0.updateTime = wire(time) }
        $0.transformResults = answer.transformed.map { self.wire($0) }
      }
    }
  }

  // MARK: - To the wire

  extension ValueMapping {
    /// Returns a write as a client sends it.
    ///
    /// Throws `.invalidArgument` for an instruction that cannot be sent.
    package func wire(_ write: ClientWrite) throws(DatabaseError) -> WireWrite {
      var wire = WireWrite()
      let name = database.name(of: write.path)
      switch write.change {
      case .delete: wire.delete = name
      case .verify: wire.verify = name
      case .replace(let fields):
        wire.update.name = name
        wire.update.fields = self.wire(fields)
      case .patch(let fields, let mask):
        wire.update.name = name
        wire.update.fields = self.wire(fields)
        wire.updateMask.fieldPaths = mask.map { Self.path(of: $0) }
      }
      for transform in write.transforms {
        wire.updateTransforms.append(try self.wire(transform))
      }
      switch write.condition {
      case .none: break
      case .exists(let exists): wire.currentDocument.exists = exists
      case .updated(let time): wire.currentDocument.updateTime = self.wire(time)
      }
      return wire
    }

    /// A path to a field, as the protocol writes it.
    package static func path(of names: [String]) -> String {
      names.map { FieldPath.quoted($0) }.joined(separator: ".")
    }

    private func wire(
      _ transform: ClientWrite.Transform
    ) throws(DatabaseError) -> WireDocumentTransform.FieldTransform {
      var wire = WireDocumentTransform.FieldTransform()
      wire.fieldPath = Self.path(of: transform.path)
      switch transform.operation {
      case .serverTimestamp: wire.setToServerValue = .requestTime
      case .increment(let value): wire.increment = self.wire(value)
      case .minimum(let value): wire.minimum = self.wire(value)
      case .maximum(let value): wire.maximum = self.wire(value)
      case .arrayUnion(let values):
        wire.appendMissingElements.values = values.map { self.wire($0) }
      case .arrayRemove(let values):
        wire.removeAllFromArray.values = values.map { self.wire($0) }
      case .delete:
        throw DatabaseError(
          .invalidArgument, "a delete is part of a mask", field: wire.fieldPath)
      case .invalid(let error): throw error
      }
      return wire
    }
  }
#endif
