// A property of a type in a condition, an order or an update: what stands for it until the
// collection says in which field it is stored.

/// A property of a type, however deep.
///
/// In `items.where { $0.address.city == "Seoul" }` these are `$0.address` and `$0.address.city`.
/// Optionals on the way are passed through: `$0.address.city` also where `address` is optional.
@dynamicMemberLookup
public struct ModelProperty<Model: Codable & Sendable, Content>: @unchecked Sendable {
  // Safe to share: key paths are immutable, and those that come in here hold no subscripts'
  // arguments that could not be shared; see the initialisers.

  /// What the property is known by.
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

  /// A property of the property, where that is there.
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
  /// The property as code.
  public var description: String {
    "\(Model.self)" + keyPaths.map { "\($0)".drop { $0 != "." } }.joined()
  }
}

/// All properties of a type: what the closure of `where(_:)` is given.
@dynamicMemberLookup
public struct ModelProperties<Model: Codable & Sendable>: Sendable {
  /// A property.
  public subscript<Content>(
    dynamicMember member: any KeyPath<Model, Content> & Sendable
  ) -> ModelProperty<Model, Content> { ModelProperty(member) }
}
