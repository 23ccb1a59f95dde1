// The device's own time to make the bytes of one document survive a power cut, which is the lowest
// cost of a commit. It is timed between the commits for comparison, because a virtual machine's
// device changes from one second to the next.

import BenchmarkKit
import CPeers
import Foundation
import Peers
import OndolPlatform

/// Writes to files that are already filled, so that no file system must allocate or grow them.
final class Device {
  /// One way to a synced write.
  private struct Way {
    var file: CInt
    var syncsApart: Bool
    var microseconds: [Double] = []
  }

  private let bytes: [UInt8]
  private let directory: String
  private var ways: [Way] = []

  /// - Parameter times: the largest number of calls of `write`.
  init(lengthBytes: Int, times: Int, in directory: String) throws {
    bytes = [UInt8](repeating: 0xA5, count: lengthBytes)
    self.directory = directory
    ways = [Way(file: try fill("device-1", times, flags: 0), syncsApart: true)]
    #if os(Linux)
      ways.append(Way(file: try fill("device-2", times, flags: O_DSYNC), syncsApart: false))
    #endif
  }

  deinit {
    for (index, way) in ways.enumerated() {
      close(way.file)
      _ = unsafe unlink("\(directory)/device-\(index + 1)")
    }
  }

  /// The median of the faster way, in microseconds.
  var medianMicroseconds: Double {
    ways.map { median($0.microseconds) }.min() ?? 0
  }

  /// Writes the next place of each file, synced, and records the time of each.
  func write() throws {
    for index in ways.indices {
      let way = ways[index]
      let start = peer_now()
      let offset = off_t(way.microseconds.count * bytes.count)
      let written = unsafe pwrite(way.file, bytes, bytes.count, offset)
      guard written == bytes.count, !way.syncsApart || Self.synchronize(way.file) else {
        throw PeerError("device", "write", directory)
      }
      ways[index].microseconds.append(Double(peer_now() - start) / 1e3)
    }
  }

  private func fill(_ name: String, _ times: Int, flags: CInt) throws -> CInt {
    let path = directory + "/" + name
    let file = unsafe Foundation.open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0o644)
    guard file >= 0 else { throw PeerError("device", "open", path) }
    let zeros = [UInt8](repeating: 0, count: bytes.count * times)
    guard unsafe pwrite(file, zeros, zeros.count, 0) == zeros.count, Self.synchronize(file) else {
      throw PeerError("device", "fill", path)
    }
    return file
  }

  private static func synchronize(_ file: CInt) -> Bool {
    #if os(Linux)
      fdatasync(file) == 0
    #else
      fcntl(file, F_FULLFSYNC) == 0
    #endif
  }
}
