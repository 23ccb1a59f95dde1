// What the library derives from an address without connecting.

internal import CLibPQ

/// Calls into libpq that need no connection.
enum Library {
  /// Whether the library can read an address. Its message about an unreadable address is not passed
  /// on, because it quotes the address, which may contain a password.
  static func canRead(_ address: String) -> Bool {
    var message: UnsafeMutablePointer<CChar>?
    let options = unsafe PQconninfoParse(address, &message)
    unsafe PQfreemem(message)
    unsafe PQconninfoFree(options)
    return unsafe options != nil
  }
}
