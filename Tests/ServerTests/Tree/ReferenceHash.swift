// SHA-1 in base64, for tests that compute a client's hashes by themselves.

#if Server
  import Crypto
  import Foundation

  enum ReferenceHash {
    static func base64(ofText text: String) -> String {
      Data(Insecure.SHA1.hash(data: Data(text.utf8))).base64EncodedString()
    }
  }
#endif
