"""A link with a delay, for measurements: forwards TCP connections to a port of this machine, and each byte arrives
latency_s / 2 later than it was sent, both ways. As many bytes as come may be under way."""
import asyncio
import threading


class SlowLink:
    def __init__(self, port, latency_s):
        self.to, self.delay = port, latency_s / 2
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()
        self.ready.wait()
        self.url = f"http://127.0.0.1:{self.port}"

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.accept, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def accept(self, reader, writer):
        try:
            out_reader, out_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.pipe(reader, out_writer), self.pipe(out_reader, writer))

    async def pipe(self, reader, writer):
        """Arrival times are kept in a queue, so that a delay is no limit to speed."""
        queue = asyncio.Queue()

        async def send():
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0, due - self.loop.time()))
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        sender = self.loop.create_task(send())
        try:
            while data := await reader.read(1 << 18):
                queue.put_nowait((self.loop.time() + self.delay, data))
        except OSError:
            pass
        queue.put_nowait((self.loop.time() + self.delay, b""))
        try:
            await sender
        except OSError:
            pass
