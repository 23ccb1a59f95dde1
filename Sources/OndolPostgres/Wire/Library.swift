// What the library makes of an address, without connecting.

internal import CLibPQ

/// Calls into libpq that need no connection.
enum Library {
  /// Whether the library can read an address. What it says of one that it cannot is not told: it
  /// quotes from it, and there may be a password.
  static func canRead(_ address: String) -> Bool {
    var message: UnsafeMutablePointer<CChar>?
    let options = unsafe PQconninfoParse(address, &message)
    unsafe PQfreemem(message)
    unsafe PQconninfoFree(options)
    return unsafe options != nil
  }
}
