// Decides by name which files of a directory belong to a database.

extension FileNumber {
  /// The number in the name of a file of a database.
  static func ofFile(_ name: String) -> FileNumber? {
    parse(name, prefix: "LOG-") ?? parse(name, prefix: "MANIFEST-")
      ?? parse(name, suffix: ".seg") ?? parse(name, suffix: ".val")
      ?? ContentFile.parse(name)?.1 ?? parse(name, suffix: ".scratch")
  }

  /// Whether a database uses files with this name, numbered or not.
  static func mayBeOfFile(_ name: String) -> Bool {
    switch name {
    case Superblock.name, SpaceReserve.name, GroupKeysFile.name, "LOCK": true
    default: ofFile(name) != nil
    }
  }
}
