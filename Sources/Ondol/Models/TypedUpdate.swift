// Changes of single properties: the updates of their fields.

/// A change of one property of a document.
///
/// ```swift
/// try await items.document("lamp").update(.set(\.price, to: 30), .increment(\.count, by: -1))
/// ```
public struct TypedUpdate<Model: Codable & Sendable>: Sendable {
  /// The field, and its new value.
  let change: @Sendable (ModelFields<Model>) throws(DatabaseError) -> (FieldPath, any FieldContent)

  private init<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content> & Sendable,
    _ content: @escaping @Sendable (DocumentEncoder) -> any FieldContent
  ) {
    let property = ModelProperty(property)
    change = { (fields) throws(DatabaseError) in
      (try fields.path(of: property), content(fields.encoder))
    }
  }

  /// Sets the property.
  public static func set<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content> & Sendable, to value: Content
  ) -> TypedUpdate {
    TypedUpdate(property) { EncodedContent(value, $0) }
  }

  /// Sets the property; nil removes its field, just as writing the whole value leaves it out.
  public static func set<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content?> & Sendable, to value: Content?
  ) -> TypedUpdate {
    TypedUpdate(property) { encoder in
      if let value { return EncodedContent(value, encoder) }
      return FieldValue.delete()
    }
  }

  /// Removes the property's field.
  public static func delete<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content?> & Sendable
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.delete() }
  }

  /// Adds to an integer, which saturates at the limits of `Int64`. See `FieldValue.increment(_:)`.
  public static func increment<Number: Encodable & BinaryInteger & Sendable>(
    _ property: any KeyPath<Model, Number> & Sendable, by amount: Number
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.increment(Int64(clamping: amount)) }
  }

  /// Adds to a number. See `FieldValue.increment(_:)`.
  public static func increment<Number: Encodable & BinaryFloatingPoint & Sendable>(
    _ property: any KeyPath<Model, Number> & Sendable, by amount: Number
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.increment(Double(amount)) }
  }

  /// Adds to an integer; a missing one becomes `amount`.
  public static func increment<Number: Encodable & BinaryInteger & Sendable>(
    _ property: any KeyPath<Model, Number?> & Sendable, by amount: Number
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.increment(Int64(clamping: amount)) }
  }

  /// Adds to a number; a missing one becomes `amount`.
  public static func increment<Number: Encodable & BinaryFloatingPoint & Sendable>(
    _ property: any KeyPath<Model, Number?> & Sendable, by amount: Number
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.increment(Double(amount)) }
  }

  /// Appends the elements that the array lacks. See `FieldValue.arrayUnion(_:)`.
  public static func arrayUnion<Element: Encodable & Sendable>(
    _ property: any KeyPath<Model, [Element]> & Sendable, _ elements: [Element]
  ) -> TypedUpdate {
    TypedUpdate(property) { encoder in
      FieldValue.arrayUnion(elements.map { EncodedContent($0, encoder) })
    }
  }

  /// Removes every element that equals one of these. See `FieldValue.arrayRemove(_:)`.
  public static func arrayRemove<Element: Encodable & Sendable>(
    _ property: any KeyPath<Model, [Element]> & Sendable, _ elements: [Element]
  ) -> TypedUpdate {
    TypedUpdate(property) { encoder in
      FieldValue.arrayRemove(elements.map { EncodedContent($0, encoder) })
    }
  }

  /// Stores the time of the commit. See `FieldValue.serverTimestamp()`. With a ``DateStrategy``
  /// other than timestamps, the field could not be read back.
  public static func serverTimestamp<Moment: Encodable & Sendable>(
    _ property: any KeyPath<Model, Moment> & Sendable
  ) -> TypedUpdate {
    TypedUpdate(property) { _ in FieldValue.serverTimestamp() }
  }
}

extension [FieldPath: (any FieldContent)?] {
  /// Combines the updates.
  init<Model>(
    _ updates: [TypedUpdate<Model>], _ fields: ModelFields<Model>
  ) throws(DatabaseError) {
    self.init()
    for update in updates {
      let (path, content) = try update.change(fields)
      guard updateValue(content, forKey: path) == nil else {
        throw DatabaseError(
          .invalidArgument, "two updates of one call change the field", field: "\(path)")
      }
    }
  }
}
