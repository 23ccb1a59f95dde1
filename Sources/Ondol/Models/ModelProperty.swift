// A property of a type in a condition, an order or an update: a placeholder until the collection
// determines its field.

/// A property of a type, however deep.
///
/// In `items.where { $0.address.city == "Seoul" }` these are `$0.address` and `$0.address.city`.
/// Optionals on the way need no unwrapping: it is `$0.address.city` even when `address` is
/// optional.
@dynamicMemberLookup
public struct ModelProperty<Model: Codable & Sendable, Content>: @unchecked Sendable {
  // Safe to share: key paths are immutable, and those that get in here hold only subscript
  // arguments that can be shared; see the initialisers.

  /// The key paths that identify the property.
  let keyPaths: [AnyKeyPath]
  /// Reads it.
  let read: (Model) -> Content

  private init(_ keyPaths: [AnyKeyPath], _ read: @escaping (Model) -> Content) {
    self.keyPaths = keyPaths
    self.read = read
  }

  init(_ keyPath: any KeyPath<Model, Content> & Sendable) {
    self.init([keyPath]) { $0[keyPath: keyPath] }
  }

  /// A property of the property.
  public subscript<Member>(
    dynamicMember member: any KeyPath<Content, Member> & Sendable
  ) -> ModelProperty<Model, Member> {
    let read = read
    return ModelProperty<Model, Member>(keyPaths + [member]) { read($0)[keyPath: member] }
  }

  /// A property of the property, when that exists.
  public subscript<Wrapped, Member>(
    dynamicMember member: any KeyPath<Wrapped, Member> & Sendable
  ) -> ModelProperty<Model, Member?> where Content == Wrapped? {
    let read = read
    return ModelProperty<Model, Member?>(keyPaths + [member]) { model in
      read(model).map { $0[keyPath: member] }
    }
  }
}

extension ModelProperty: CustomStringConvertible {
  /// The property in the form of code.
  public var description: String {
    "\(Model.self)" + keyPaths.map { "\($0)".drop { $0 != "." } }.joined()
  }
}

/// All properties of a type: the argument of the closure of `where(_:)`.
@dynamicMemberLookup
public struct ModelProperties<Model: Codable & Sendable>: Sendable {
  /// A property.
  public subscript<Content>(
    dynamicMember member: any KeyPath<Model, Content> & Sendable
  ) -> ModelProperty<Model, Content> { ModelProperty(member) }
}
