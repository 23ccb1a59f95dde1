// The version of the files' format, for tools that show it. There is one version, so it needs no
// open file.

/// What this build writes and reads.
package enum FileFormat {
  /// Major and minor number, as the superblock has them.
  package static var version: String { "\(Superblock.major).\(Superblock.minor)" }
}
