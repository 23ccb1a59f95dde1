// What the runner itself asks of the system: how much room a database takes, how fast the device
// syncs, and that nothing one engine left behind is written while the next one is timed.

import CPeers
import Foundation
import Peers

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The blocks that the files below `directory` take on the device, in bytes.
func allocatedBytes(below directory: String) -> Int {
  let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
  return names.reduce(0) { total, name in
    var status = stat()
    guard unsafe lstat(directory + "/" + name, &status) == 0 else { return total }
    return total + Int(status.st_blocks) * 512
  }
}

/// Waits until the system has written out everything.
func writeOutEverything() {
  sync()
}

/// The median time in microseconds of appending `lengthBytes` to a file of zeros and syncing it:
/// the least that a commit which survives a power cut can cost.
func deviceFloor(lengthBytes: Int, times: Int, in directory: String) throws -> Double {
  let path = directory + "/floor"
  let file = unsafe Foundation.open(path, O_RDWR | O_CREAT | O_TRUNC, 0o644)
  guard file >= 0 else { throw PeerError("device", "open", path) }
  defer {
    _ = close(file)
    _ = unsafe unlink(path)
  }
  let zeros = [UInt8](repeating: 0, count: lengthBytes * times)
  var written = unsafe pwrite(file, zeros, zeros.count, 0)
  guard written == zeros.count, synchronize(file) else {
    throw PeerError("device", "fill", path)
  }
  let bytes = [UInt8](repeating: 0xA5, count: lengthBytes)
  var microseconds: [Double] = []
  for index in 0..<times {
    let start = peer_now()
    written = unsafe pwrite(file, bytes, lengthBytes, off_t(index * lengthBytes))
    guard written == lengthBytes, synchronize(file) else {
      throw PeerError("device", "write", path)
    }
    microseconds.append(Double(peer_now() - start) / 1e3)
  }
  return median(microseconds)
}

private func synchronize(_ file: Int32) -> Bool {
  #if canImport(Glibc)
    fdatasync(file) == 0
  #else
    fcntl(file, F_FULLFSYNC) == 0
  #endif
}

/// The middle of `values`, which must not be empty.
func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
