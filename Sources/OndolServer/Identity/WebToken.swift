// The form of a token: RFC 7519's JSON Web Token in its compact form, three parts in base64 with
// dots between. Everything in it comes from strangers until the signature is checked, so sizes come
// first, and JSON in which a name stands twice is refused: two readers could see two persons in it.

#if Server
  import Crypto
  import Foundation
  import Ondol
  import OndolJSON

  /// A token that has been taken apart, and not checked.
  struct WebToken: Sendable {
    /// The longest token, in bytes. Claims of an account have 1,000 bytes, and so have those of a
    /// session.
    static let mostBytes = 16_384
    /// The only algorithm that signs here: ECDSA on P-256 with SHA-256.
    static let algorithm = "ES256"
    private static let signatureBytes = 64
    private static let mostKeyIDBytes = 64

    let header: [String: Value]
    let claims: [String: Value]
    /// What the signature is of: the first two parts and the dot between.
    private let signed: [UInt8]
    private let signature: [UInt8]

    /// Takes a token apart.
    ///
    /// - Complexity: O(bytes), at most `mostBytes`.
    init(_ token: String) throws(TokenProblem) {
      let bytes = Array(token.utf8.prefix(Self.mostBytes + 1))
      guard bytes.count <= Self.mostBytes else {
        throw .malformed("a token has \(Self.mostBytes) bytes at most")
      }
      let parts = bytes.split(
        separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
      guard parts.count == 3 else { throw .malformed("a token has three parts") }
      guard let signature = Base64URL.decode(parts[2]) else {
        throw .malformed("its signature is not base64")
      }
      header = try Self.object(parts[0])
      claims = try Self.object(parts[1])
      // No extension is known here, so none can be understood as it must be.
      guard header["crit"] == nil else { throw .malformed("its header has unknown extensions") }
      signed = Array(bytes[..<parts[1].endIndex])
      self.signature = signature
    }

    /// Signs claims.
    init(claims: [String: Value], signedWith key: TokenKey) throws(TokenProblem) {
      header = [
        "alg": .string(Self.algorithm), "kid": .string(key.id), "typ": .string("JWT"),
      ]
      self.claims = claims
      signed = Array("\(Self.part(header)).\(Self.part(claims))".utf8)
      do {
        signature = Array(try key.secret.signature(for: signed).rawRepresentation)
      } catch {
        throw .failed(DatabaseError(.internal, "a token could not be signed"))
      }
    }

    /// The token.
    var text: String { "\(String(decoding: signed, as: UTF8.self)).\(Base64URL.encode(signature))" }

    /// Whether nobody has signed it, and it says so.
    var isUnsigned: Bool { header["alg"] == .string("none") && signature.isEmpty }

    /// The key that it says has signed it.
    var keyID: String {
      get throws(TokenProblem) {
        guard header["alg"] == .string(Self.algorithm) else { throw .wrongAlgorithm }
        guard let id = header["kid"]?.string, (1...Self.mostKeyIDBytes).contains(id.utf8.count)
        else { throw .wrongKey }
        return id
      }
    }

    /// Throws `.wrongSignature` unless the key has signed it.
    func check(signedWith key: TokenKey) throws(TokenProblem) {
      guard signature.count == Self.signatureBytes,
        let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
        key.published.isValidSignature(signature, for: signed)
      else { throw .wrongSignature }
    }

    private static func object(_ part: ArraySlice<UInt8>) throws(TokenProblem) -> [String: Value] {
      guard let bytes = Base64URL.decode(part) else { throw .malformed("a part is not base64") }
      guard let value = try? JSONReader.read(bytes, .plain, numbers: .double),
        let members = value.map
      else { throw .malformed("a part is no JSON object") }
      return members
    }

    private static func part(_ members: [String: Value]) -> String {
      Base64URL.encode(JSONWriter.line(.map(members), .plain).utf8)
    }
  }
#endif
