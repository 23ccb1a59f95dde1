"""The demo's shop with Google's clients: items in Firestore, and their pictures in Cloud Storage.

    FIRESTORE_EMULATOR_HOST=… STORAGE_EMULATOR_HOST=… shop.py [PICTURES]

Prints what it finds as lines of JSON. Beside the form in Swift (Sources/OndolDemo/Shop.swift), an app
deletes the pictures of an item itself: Google's two products know nothing of each other.
"""

import json
import pathlib
import sys

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore, storage
from google.cloud.firestore_v1.base_query import FieldFilter

PROJECT = "demo-shop"
ORDERS = 200
STOCK = {
    "lamp": {"name": "라탄 조명", "price": 39_000, "count": 2, "description": "손으로 엮은 갓"},
    "chair": {"name": "원목 의자", "price": 82_000, "count": 5, "description": "참나무, 기름 마감"},
    "vase": {"name": "도자기 화병", "price": 27_500, "count": 8, "description": "흰 유약"},
    "blanket": {"name": "모직 담요", "price": 54_000, "count": 3, "description": "양모 백 퍼센트"},
    "cups": {"name": "찻잔 세트", "price": 45_000, "count": 4, "description": "다섯 개 한 벌"},
    "cushion": {"name": "온돌 방석", "price": 18_000, "count": 12, "description": "메밀 속"},
}


def say(name: str, result: object) -> None:
    print(json.dumps({name: result}, ensure_ascii=False), flush=True)


def stock_up(client: firestore.Client) -> None:
    batch = client.batch()
    for name, item in STOCK.items():
        batch.set(client.document("upload", name), {**item, "imagePath": []})
    batch.commit()


def sell(client: firestore.Client) -> None:
    lamp = client.document("upload", "lamp")
    lamp.update({
        "count": firestore.Increment(-1),
        "imagePath": firestore.ArrayUnion(["images/lamp-1.png", "images/lamp-2.png"]),
        "updated": firestore.SERVER_TIMESTAMP,
    })
    after = lamp.get()
    say("sold", {"left": after.get("count"), "pictures": after.get("imagePath")})
    client.document("upload", "cushion").delete()
    say("cushion", client.document("upload", "cushion").get().exists)


def ask(client: firestore.Client) -> None:
    items = client.collection("upload")
    names = ["라탄 조명", "찻잔 세트", "없는 물건"]
    named = items.where(filter=FieldFilter("name", "in", names)).order_by("name")
    say("named", [one.id for one in named.stream()])
    cheap = items.where(filter=FieldFilter("price", "<", 50_000)).order_by(
        "price", direction=firestore.Query.DESCENDING).limit(3)
    say("cheap", [one.id for one in cheap.stream()])


def take_orders(client: firestore.Client) -> None:
    ids = list(STOCK)
    for number in range(1, ORDERS + 1):
        client.document("orders", f"order-{number}").create(
            {"number": number, "item": ids[number % len(ids)]})
    found = [one.get("number") for one in client.collection("orders").order_by("number").stream()]
    say("orders", {"count": len(found), "whole": found == list(range(1, ORDERS + 1))})


def show_pictures(client: firestore.Client, folder: pathlib.Path) -> None:
    """Gives every item a picture, replaces one, and removes an item with its picture."""
    pictures = sorted(folder.iterdir())
    bucket = storage.Client(project=PROJECT, credentials=AnonymousCredentials()).bucket(
        f"{PROJECT}.appspot.com")

    def take(item: firestore.DocumentReference, number: int) -> str:
        picture = pictures[number % len(pictures)]
        path = f"images/{item.id}/{number + 1}{picture.suffix}"
        before = item.get().get("imagePath")
        bucket.blob(path).upload_from_filename(str(picture))
        item.update({"imagePath": [path]})
        for old in before:
            if bucket.blob(old).exists():
                bucket.blob(old).delete()
        return path

    items = [one.reference for one in client.collection("upload").order_by("name").stream()]
    paths = [take(item, number) for number, item in enumerate(items)]
    say("pictures", {path: bucket.get_blob(path).size for path in paths})
    take(items[0], len(items))
    say("replaced", bucket.blob(paths[0]).exists())
    (last,) = items[1].get().get("imagePath")
    items[1].delete()
    bucket.blob(last).delete()
    say("removed", bucket.blob(last).exists())


def main() -> None:
    client = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
    stock_up(client)
    sell(client)
    ask(client)
    if len(sys.argv) > 1:
        show_pictures(client, pathlib.Path(sys.argv[1]))
    take_orders(client)


main()
