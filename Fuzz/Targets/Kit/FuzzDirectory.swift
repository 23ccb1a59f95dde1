// A directory whose files are arrays, created again for each input.

package import OndolEngine

/// Files by name.
package final class FuzzDirectory: Directory {
  private let files: Guarded<[String: FuzzFile]>
  package let path = "fuzz"

  package init(_ contents: [String: [UInt8]] = [:]) {
    files = Guarded(
      Dictionary(
        uniqueKeysWithValues: contents.map { ($0.key, FuzzFile(name: $0.key, $0.value)) }))
  }

  /// The content of the file `name`.
  package func contents(_ name: String) -> [UInt8] {
    files.withLock { $0[name] }?.contents ?? []
  }

  package func list() throws(EngineError) -> [String] { files.withLock { Array($0.keys) } }

  package func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    guard let file = files.withLock({ $0[name] }) else {
      throw .io(operation: "open", file: name, offset: nil, errno: 2)
    }
    return file
  }

  package func create(_ name: String) throws(EngineError) -> any File {
    let file = FuzzFile(name: name, [])
    files.withLock { $0[name] = file }
    return file
  }

  package func remove(_ name: String) throws(EngineError) {
    files.withLock { _ = $0.removeValue(forKey: name) }
  }

  package func sync() throws(EngineError) {}
  package func syncName() throws(EngineError) {}

  package func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    throw .inUse(path: path, holder: owner)
  }
}

/// A file in memory.
package final class FuzzFile: File {
  package let name: String
  private let storage: Guarded<[UInt8]>

  init(name: String, _ bytes: [UInt8]) {
    self.name = name
    storage = Guarded(bytes)
  }

  var contents: [UInt8] { storage.withLock { $0 } }

  package func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    demand(count >= 0 && count < 1 << 30, "a read of \(count) bytes")
    return storage.withLock { bytes in
      guard offset < UInt64(bytes.count) else { return [] }
      return Array(bytes[Int(offset)...].prefix(count))
    }
  }

  package func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let new = bytes.array
    storage.withLock { bytes in
      let end = Int(offset) + new.count
      if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
      bytes.replaceSubrange(Int(offset)..<end, with: new)
    }
  }

  package func sync() throws(EngineError) {}

  package func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try write(bytes, at: offset)
  }

  package func size() throws(EngineError) -> UInt64 { UInt64(contents.count) }
}
