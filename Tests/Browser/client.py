"""A client of the API: an app's actions in the meantime, and the final state."""

import json
import urllib.error
import urllib.request
from urllib.parse import quote, urlencode


class API:
    """Calls the server as the page does, from outside."""

    def __init__(self, url):
        self.base, _, self.token = url.partition("#token=")

    def call(self, method, route, body=None, match=None, data=None, **query):
        search = f"?{urlencode(query, quote_via=quote)}" if query else ""
        headers = {"Authorization": f"Bearer {self.token}"}
        if match is not None:
            headers["If-Match"] = f'"{match}"'
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(f"{self.base}api/v1/{route}{search}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            content = response.read()
        return (
            json.loads(content)
            if response.headers["Content-Type"].startswith("application/json")
            else content
        )

    def document(self, path):
        try:
            return self.call("GET", "document", path=path)["document"]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, path, fields):
        """Sets a document's fields, whatever it has."""
        found = self.document(path)
        version = found["version"] if found else "0"
        return self.call("PUT", "document", {"fields": fields}, version, path=path)["document"]

    def patch(self, path, **fields):
        return self.call("PATCH", "document", {"set": fields}, self.document(path)["version"], path=path)

    def delete(self, path):
        found = self.document(path)
        if found:
            self.call("DELETE", "document", None, found["version"], path=path)

    def store(self, path, data, content_type):
        folder = path.rpartition("/")[0]
        listing = self.call("GET", "storage", prefix=f"{folder}/" if folder else "")
        found = [one for one in listing["objects"] if one["path"] == path]
        return self.call(
            "PUT",
            "object",
            None,
            found[0]["generation"] if found else "0",
            data,
            path=path,
            type=content_type,
        )["object"]
