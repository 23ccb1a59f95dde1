# Google's clients from PyPI, in a folder of the build. Sourced after prepare.sh.

clients=.build/clients

# Downloads them; false if they are not available.
require_clients() {
  command -v python3 >/dev/null 2>&1 || install_package python3 python3 python3
  if [ ! -x "$clients/bin/python" ]; then
    python3 -m venv "$clients" 2>/dev/null || {
      install_package python3-venv python3 python3
      python3 -m venv "$clients"
    }
  fi
  "$clients/bin/python" -c "import google.cloud.firestore" 2>/dev/null ||
    "$clients/bin/pip" --quiet --disable-pip-version-check install google-cloud-firestore
  "$clients/bin/python" -c "import google.cloud.storage" 2>/dev/null ||
    "$clients/bin/pip" --quiet --disable-pip-version-check install google-cloud-storage
  "$clients/bin/python" -c "import firebase_admin" 2>/dev/null ||
    "$clients/bin/pip" --quiet --disable-pip-version-check install firebase-admin
  # Not a client, but another opinion about reports.
  "$clients/bin/python" -c "import duckdb" 2>/dev/null ||
    "$clients/bin/pip" --quiet --disable-pip-version-check install duckdb
  # Only for its messages, which need none of the packages that it names.
  "$clients/bin/python" -c "from google.appengine.datastore import entity_bytes_pb2" 2>/dev/null ||
    "$clients/bin/pip" --quiet --disable-pip-version-check install --no-deps appengine-python-standard
}
