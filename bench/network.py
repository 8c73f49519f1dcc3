#!/usr/bin/env python3
"""Workload P1 (recipes/photos.yaml, packed) from a server behind 50 ms of latency, compared with the same pack on the local disk.

    bench/network.py [--photos FOLDER] [--rounds 3] [--seconds 3] [--latency-ms 50] [--stoker build/stoker] [--run-as "chrt -r 1"]

nginx serves the pack over HTTP; with STOKER_MOTO (a virtual environment with moto[server,s3] and boto3) moto does as S3, and
checks signatures. Rounds take turns. Cold: with an empty cache, the time until the first batch and what follows. Warm: from
the cache on disk, as every later epoch and run."""
import argparse
import json
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tests", "cli")]
import moto  # noqa: E402
from slow_link import SlowLink  # noqa: E402

NGINX = """daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 1; events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; keepalive_requests 1000000;
client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
server {{ listen 127.0.0.1:{1}; root {0}/www; }} }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def bench(args, folder, source, environment):
    command = [*args.run_as, args.stoker, "data", "bench", os.path.join(HERE, "..", "recipes", "photos.yaml"), "--threads", "2",
               "--set", f"data.train.source.files={source}", "--seconds", str(args.seconds), "--json"]
    environment = dict(os.environ, STOKER_CACHE=os.path.join(folder, "cache"), **environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{source}: {done.stderr}")
    result = json.loads(done.stdout)
    return result["samples_per_s"], result["first_batch_s"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--photos", default="shared/data/photos")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=int, default=3)
    p.add_argument("--latency-ms", type=float, default=50)
    p.add_argument("--stoker", default="build/stoker")
    p.add_argument("--run-as", type=shlex.split, default=[], help="before the measured command: \"chrt -r 1\"")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        pack = os.path.join(folder, "www", "pack")
        subprocess.run([args.stoker, "pack", args.photos, "--out", pack, "--shard-size", "16"], check=True, capture_output=True)
        port = free_port()
        with open(f"{folder}/nginx.conf", "w") as f:
            f.write(NGINX.format(folder, port))
        servers = [subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", f"{folder}/nginx.conf"])]
        try:
            time.sleep(0.5)
            link = SlowLink(port, args.latency_ms / 1000)
            sources = {"local": (pack, {}), "http (nginx)": (f"{link.url}/pack", {})}
            if moto.find():
                s3 = moto.Moto(moto.find(), ["data"])
                servers.append(s3.process)
                s3.upload("data", "pack/", pack)
                slow = SlowLink(urllib.parse.urlparse(s3.url).port, args.latency_ms / 1000)
                sources["s3 (moto)"] = ("s3://data/pack", {"AWS_ENDPOINT_URL": slow.url, "AWS_ACCESS_KEY_ID": s3.key,
                                                           "AWS_SECRET_ACCESS_KEY": s3.secret, "AWS_REGION": "us-east-1"})
            cold, warm = {}, {name: [] for name in sources}
            for name, source in sources.items():
                shutil.rmtree(f"{folder}/cache", ignore_errors=True)
                cold[name] = bench(args, folder, *source)
            for name, source in sources.items():
                bench(args, folder, *source)
            for _ in range(args.rounds):
                for name, source in sources.items():
                    warm[name].append(bench(args, folder, *source)[0])
        finally:
            for server in servers:
                server.terminate()
        local = statistics.median(warm["local"])
        print("| Source | cold: first batch | cold: photos/s | warm: photos/s | of local |\n|---|---:|---:|---:|---:|")
        for name in sources:
            rate = statistics.median(warm[name])
            print(f"| {name} | {cold[name][1]:.2f} s | {cold[name][0]:,.0f} | {rate:,.0f} ({min(warm[name]):,.0f} to "
                  f"{max(warm[name]):,.0f}) | {rate / local:.2f}x |")


main()
