// The hash of a node as the Realtime Database's clients compute it. A client that comes back sends
// the hash of what it has, and receives nothing when it is still right; a transaction sends the
// hash of what it was computed from.
//
//   leaf:      [priority:] type ":" value
//   children:  [priority:] then for each, by priority and key, ":" key ":" hash
//   priority:  "priority:" type ":" value ":"
//
// Of that text the SHA-1, in base64. A number's value is its 64 bits as a double in hexadecimal
// digits. A node that does not exist has an empty hash.

#if Server
  import Crypto
  import Foundation
  import Ondol

  enum TreeHash {
    /// The hash of a node.
    ///
    /// - Complexity: O(nodes).
    static func hash(of data: TreeData) -> String {
      guard data.exists else { return "" }
      var text = ""
      if let priority = data.priority { text += "priority:" + scalar(priority) + ":" }
      if let leaf = data.leaf {
        text += scalar(leaf)
      } else {
        for (key, child) in data.childrenByPriority {
          text += ":" + key + ":" + hash(of: child)
        }
      }
      return Data(Insecure.SHA1.hash(data: Data(text.utf8))).base64EncodedString()
    }

    private static func scalar(_ value: Value) -> String {
      switch value {
      case .boolean(let truth): "boolean:\(truth)"
      case .integer(let number): "number:" + hexadecimal(Double(number))
      case .double(let number): "number:" + hexadecimal(number)
      case .string(let text): "string:" + text
      // The tree has no other leaves.
      default: ""
      }
    }

    private static func hexadecimal(_ number: Double) -> String {
      let digits = String(number.bitPattern, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
  }
#endif
