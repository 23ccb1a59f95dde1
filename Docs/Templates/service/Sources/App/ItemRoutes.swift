// The paths of the service, and only the HTTP part of them.

import Foundation
import Hummingbird
import Ondol

func addItemRoutes(to router: Router<BasicRequestContext>, _ shop: Shop) {
  let items = router.group("items")

  items.get { request, _ in
    let query = request.uri.queryParameters
    return try await shop.page(
      of: query.get("category"), limit: query.get("limit", as: Int.self) ?? 20,
      after: query.get("after"))
  }

  items.post { request, context in
    let new = try await request.decode(as: NewItem.self, context: context)
    return EditedResponse(status: .created, response: ItemAnswer(try await shop.add(new)))
  }

  items.get("live") { request, _ in
    liveEvents(shop.list(of: request.uri.queryParameters.get("category")), for: request) {
      $0.documents.map(ItemAnswer.init)
    }
  }

  items.get(":id") { _, context in
    ItemAnswer(try await shop.item(try context.parameters.require("id")))
  }

  items.patch(":id") { request, context in
    let changes = try await request.decode(as: ItemChanges.self, context: context)
    return ItemAnswer(try await shop.change(try context.parameters.require("id"), changes))
  }

  items.delete(":id") { _, context in
    try await shop.delete(try context.parameters.require("id"))
    return HTTPResponse.Status.noContent
  }

  items.put(":id/photo") { request, context in
    let body = try await request.body.collect(upTo: Shop.mostPhotoBytes)
    try await shop.setPhoto(
      try context.parameters.require("id"), Array(buffer: body),
      contentType: request.headers[.contentType])
    return HTTPResponse.Status.noContent
  }

  items.get(":id/photo") { request, context in
    guard let photo = try await shop.item(try context.parameters.require("id")).photo else {
      throw HTTPError(.notFound, message: "the item has no photo")
    }
    // The same bytes always have the same digest.
    let tag = "\"\(photo.digest)\""
    var headers: HTTPFields = [.eTag: tag, .cacheControl: "no-cache"]
    if request.headers[.ifNoneMatch] == tag {
      return Response(status: .notModified, headers: headers)
    }
    headers[.contentType] = photo.contentType ?? "application/octet-stream"
    // An uploaded file never runs as a page of this service.
    headers[.contentSecurityPolicy] = "default-src 'none'; sandbox"
    headers[.xContentTypeOptions] = "nosniff"
    // In pieces: the photo is never whole in memory.
    let pieces = shop.database.storage.bytes(of: photo).map { ByteBuffer(bytes: $0) }
    return Response(status: .ok, headers: headers, body: ResponseBody(asyncSequence: pieces))
  }

  router.get("categories/top") { request, _ in
    try await shop.top(request.uri.queryParameters.get("count", as: Int.self) ?? 3)
  }
}
