"""A Unix-domain socket that passes connections on to another one, and delays what comes back.

    delay.py LISTEN CONNECT MICROSECONDS PIDFILE

Each request of a client so takes that much longer, however many bytes its answer has; what is
under way at the same time is delayed at the same time, as in a network.
"""

import asyncio
import os
import selectors
import sys
from typing import Tuple

CHUNK = 1 << 18


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    queue: "asyncio.Queue[Tuple[float, bytes]]" = asyncio.Queue()

    async def write() -> None:
        while True:
            due, data = await queue.get()
            wait = due - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    task = asyncio.ensure_future(write())
    try:
        data = b"?"
        while data:
            data = await reader.read(CHUNK)
            queue.put_nowait((loop.time() + delay, data))
    except ConnectionError:
        queue.put_nowait((0.0, b""))
    try:
        await task
    except ConnectionError:
        pass


async def serve(listen: str, connect: str, delay: float) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_unix_connection(connect)
        except OSError:
            writer.close()
            return
        await asyncio.gather(forward(reader, server[1], 0), forward(server[0], writer, delay))

    await (await asyncio.start_unix_server(accept, listen)).serve_forever()


if __name__ == "__main__":
    with open(sys.argv[4], "w") as pidfile:
        print(os.getpid(), file=pidfile)
    # (the default one waits for whole milliseconds)
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(serve(sys.argv[1], sys.argv[2], int(sys.argv[3]) / 1e6))
