// Which path is which call, for both protocols and for the addresses that a browser opens. Names of
// objects are one segment of a path, with "%2F" for "/". Only in addresses without a protocol's
// prefix are they several.

#if Server
  import Ondol

  /// An object in a bucket.
  struct ObjectPlace: Hashable, Sendable {
    let bucket: String
    let name: String
  }

  /// A call about objects.
  enum StorageRoute: Hashable, Sendable {
    /// What Google Cloud Storage's clients call.
    enum Google: Hashable, Sendable {
      case buckets, bucket(String), newBucket, unavailable
      case list(bucket: String)
      /// Begins an upload, or makes it.
      case upload(bucket: String)
      case get(ObjectPlace)
      case update(ObjectPlace)
      /// Replaces the metadata.
      case replaceMetadata(ObjectPlace)
      case delete(ObjectPlace)
      case copy(ObjectPlace, to: ObjectPlace, isRewrite: Bool)
      case move(ObjectPlace, to: ObjectPlace)
      case compose(ObjectPlace)
      case batch
    }

    /// What Firebase's clients call.
    enum Firebase: Hashable, Sendable {
      case list(bucket: String)
      case upload(bucket: String, name: String?)
      case get(ObjectPlace)
      case update(ObjectPlace)
      case delete(ObjectPlace)
    }

    case google(Google)
    case firebase(Firebase)
    /// The address of an object in a browser.
    case address(ObjectPlace)

    /// Nil for a path that is no call.
    init?(_ call: HTTPCall) {
      var path = call.path[...]
      let method = call.method
      if path.first == "v0" {
        guard path.count >= 4, path[1] == "b", path[3] == "o",
          let route = Firebase(method, bucket: path[2], Array(path.dropFirst(4)), call)
        else { return nil }
        self = .firebase(route)
        return
      }
      if path == ["batch", "storage", "v1"] || path == ["batch"] {
        guard method == "POST" else { return nil }
        self = .google(.batch)
        return
      }
      if path.first == "resumable" { path = path.dropFirst() }
      let isUpload = path.first == "upload"
      if isUpload || path.first == "download" { path = path.dropFirst() }
      guard path.starts(with: ["storage", "v1", "b"]) else {
        guard path.count == call.path.count, ["GET", "HEAD"].contains(method), path.count > 1,
          let bucket = path.first
        else { return nil }
        self = .address(
          ObjectPlace(bucket: bucket, name: path.dropFirst().joined(separator: "/")))
        return
      }
      guard let route = Google(method, Array(path.dropFirst(3)), isUpload: isUpload) else {
        return nil
      }
      self = .google(route)
    }

    /// The call's name in the log and in the metrics.
    var name: String {
      switch self {
      case .address: "objects.address"
      case .google(let call):
        switch call {
        case .buckets: "storage.buckets.list"
        case .bucket: "storage.buckets.get"
        case .newBucket: "storage.buckets.insert"
        case .unavailable: "storage.unavailable"
        case .list: "storage.objects.list"
        case .upload: "storage.objects.insert"
        case .get: "storage.objects.get"
        case .update: "storage.objects.patch"
        case .replaceMetadata: "storage.objects.update"
        case .delete: "storage.objects.delete"
        case .copy(_, _, let isRewrite):
          isRewrite ? "storage.objects.rewrite" : "storage.objects.copy"
        case .move: "storage.objects.move"
        case .compose: "storage.objects.compose"
        case .batch: "storage.batch"
        }
      case .firebase(let call):
        switch call {
        case .list: "objects.list"
        case .upload: "objects.upload"
        case .get: "objects.get"
        case .update: "objects.update"
        case .delete: "objects.delete"
        }
      }
    }
  }

  extension StorageRoute.Google {
    /// - Parameter path: what follows `/storage/v1/b`.
    fileprivate init?(_ method: String, _ path: [String], isUpload: Bool) {
      guard let bucket = path.first else {
        guard method == "GET" || method == "POST" else { return nil }
        self = method == "GET" ? .buckets : .newBucket
        return
      }
      guard path.count > 1 else {
        self = method == "GET" ? .bucket(bucket) : .unavailable
        return
      }
      guard path[1] == "o" else {
        self = .unavailable
        return
      }
      guard path.count > 2 else {
        switch method {
        case "GET": self = .list(bucket: bucket)
        case "POST", "PUT", "DELETE": self = .upload(bucket: bucket)
        default: return nil
        }
        return
      }
      let place = ObjectPlace(bucket: bucket, name: path[2])
      switch (method, path.count, path.count > 3 ? path[3] : "") {
      case ("PUT", 3, _) where isUpload: self = .upload(bucket: bucket)
      case ("GET", 3, _), ("HEAD", 3, _): self = .get(place)
      case ("PATCH", 3, _): self = .update(place)
      case ("PUT", 3, _): self = .replaceMetadata(place)
      case ("DELETE", 3, _): self = .delete(place)
      case ("POST", 4, "compose"): self = .compose(place)
      case ("POST", 8, "copyTo"), ("POST", 8, "rewriteTo"):
        guard path[4] == "b", path[6] == "o" else { return nil }
        let target = ObjectPlace(bucket: path[5], name: path[7])
        self = .copy(place, to: target, isRewrite: path[3] == "rewriteTo")
      case ("POST", 6, "moveTo"):
        guard path[4] == "o" else { return nil }
        self = .move(place, to: ObjectPlace(bucket: bucket, name: path[5]))
      default: self = .unavailable
      }
    }
  }

  extension StorageRoute.Firebase {
    /// - Parameter path: what follows `/v0/b/BUCKET/o`.
    fileprivate init?(_ method: String, bucket: String, _ path: [String], _ call: HTTPCall) {
      guard let name = path.first else {
        switch method {
        case "GET": self = .list(bucket: bucket)
        case "POST", "PUT": self = .upload(bucket: bucket, name: call.query["name"])
        default: return nil
        }
        return
      }
      guard path.count == 1 else { return nil }
      let place = ObjectPlace(bucket: bucket, name: name)
      switch method {
      case "GET", "HEAD": self = .get(place)
      case "PATCH": self = .update(place)
      case "DELETE": self = .delete(place)
      case "POST", "PUT":
        let isOfTokens = call.query["create_token"] != nil || call.query["delete_token"] != nil
        self =
          isOfTokens ? .update(place) : .upload(bucket: bucket, name: call.query["name"] ?? name)
      default: return nil
      }
    }
  }
#endif
