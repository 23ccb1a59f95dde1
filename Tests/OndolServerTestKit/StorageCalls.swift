// Requests of devices to a server's storage, without a socket.

#if Server && Sync
  import Ondol
  package import OndolServer
  package import OndolSync

  extension StorageRequest {
    /// What a face answers.
    ///
    /// - Throws: what the network would: the error for an answer that is too long.
    package func answer(
      of face: any HTTPFace, as credential: String? = nil
    ) async throws -> StorageAnswer {
      var fields = Dictionary(headers.map { ($0.name, $0.value) }) { $1 }
      fields["host"] = "127.0.0.1:9199"
      fields["content-length"] = "\(body.count)"
      fields["authorization"] = credential.map { "Bearer \($0)" }
      guard var call = HTTPCall(method, target, headers: fields) else {
        return StorageAnswer(status: 400, headers: [:], body: [])
      }
      if face.takesStream(call) {
        let bytes = body
        call.stream = HTTPBody { take in
          if bytes.isEmpty { return }
          try await take(bytes)
        }
      } else {
        call.body = body
      }
      let answer = await face.answer(call)
      var bytes = answer.body
      if let stream = answer.stream { for try await piece in stream.bytes { bytes += piece } }
      guard bytes.count <= mostBytes else { throw DatabaseError.endlessAnswer(mostBytes) }
      return StorageAnswer(
        status: answer.status,
        headers: Dictionary(answer.headers.map { ($0.name, $0.value) }) { $1 },
        body: bytes)
    }
  }
#endif
