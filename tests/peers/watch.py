"""Watches one session of a gateway as any reader may: counts the text events of its next run.

Usage: watch.py PORT SESSION_KEY, with the token in TIDEGATE_GATEWAY_TOKEN. Says `ready` once it
listens; at the run's end `events N` and `joined TEXT`, the pieces as they came.
"""

import asyncio
import json
import os
import sys

import websockets

CONNECT = {
    "minProtocol": 4,
    "maxProtocol": 4,
    "client": {"id": "gateway-client", "version": "1", "platform": "linux", "mode": "backend"},
    "role": "operator",
    "scopes": ["operator.read"],
    "auth": {"token": os.environ["TIDEGATE_GATEWAY_TOKEN"]},
}


async def watch(port: str, session_key: str) -> None:
    async with websockets.connect(f"ws://127.0.0.1:{port}/", max_size=None) as socket:
        hello = {"type": "req", "id": "1", "method": "connect", "params": CONNECT}
        await socket.send(json.dumps(hello))
        pieces = []
        async for raw in socket:
            frame = json.loads(raw)
            if frame.get("id") == "1":
                if not frame["ok"]:
                    sys.exit(f"refused: {frame['error']['message']}")
                print("ready", flush=True)
            payload = frame.get("payload") or {}
            if frame.get("event") != "agent" or payload.get("sessionKey") != session_key:
                continue
            data = payload["data"]
            if payload["stream"] == "assistant":
                pieces.append(data["delta"])
            elif data.get("executionSettled"):
                print(f"events {len(pieces)}\njoined {''.join(pieces)}", flush=True)
                return
        sys.exit("the gateway closed before the run's end")


asyncio.run(asyncio.wait_for(watch(*sys.argv[1:]), timeout=180))
