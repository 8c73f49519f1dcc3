"""A moto server that checks signatures, as S3 and as a store of gs://, for tests. It needs moto and boto3, which CI does not
have: STOKER_MOTO names a folder whose bin/ has both (a virtual environment with moto[server,s3] and boto3)."""
import json
import os
import socket
import subprocess
import sys
import time

ADMIN = """
import boto3, json, os, sys
options = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
iam = boto3.client("iam", **options)
iam.create_user(UserName="u")
key = iam.create_access_key(UserName="u")["AccessKey"]
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(policy))
# From here on every request is checked.
options.update(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
s3 = boto3.client("s3", **options)
for bucket in sys.argv[2:]:
    s3.create_bucket(Bucket=bucket)
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""

UPLOAD = """
import boto3, os, sys
endpoint, key, secret, bucket, prefix, folder = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)
for at, _, files in os.walk(folder):
    for name in files:
        path = os.path.join(at, name)
        s3.upload_file(path, bucket, prefix + os.path.relpath(path, folder))
"""


def find():
    """The folder of moto_server and a python with boto3, or None."""
    folder = os.path.join(os.environ.get("STOKER_MOTO", ""), "bin")
    return folder if os.path.isabs(folder) and os.path.exists(os.path.join(folder, "moto_server")) else None


class Moto:
    def __init__(self, folder, buckets):
        self.python = os.path.join(folder, "python")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = open("moto.log", "w")
        self.process = subprocess.Popen([os.path.join(folder, "moto_server"), "-p", str(port)], stdout=self.log,
                                        stderr=self.log, env=dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT="3"))
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        self.key, self.secret = json.loads(self.call(ADMIN, self.url, *buckets))

    def call(self, program, *args):
        done = subprocess.run([self.python, "-c", program, *args], capture_output=True, text=True, timeout=280)
        if done.returncode != 0:
            sys.exit(f"moto: {done.stderr}")
        return done.stdout

    def upload(self, bucket, prefix, folder):
        self.call(UPLOAD, self.url, self.key, self.secret, bucket, prefix, folder)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
