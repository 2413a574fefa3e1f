"""What object_stores_test.sh runs once everything is installed.

usage: object_stores_test.py PROGRAM FOLDER
"""
import hashlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import azure.storage.blob
import boto3

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
SIZE = 50_000_003
KEY = "models/a b+c%20ä.gguf"
CONTENT = random.Random(1).randbytes(SIZE)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
# The emulator's well-known account, printed in its manual.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, server):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{server.args[0]} does not listen")


def pull(url, environment, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_", "HF_"))}
        done = subprocess.run([PROGRAM, "pull", "--json", url, path, *flags], env={**kept, **environment},
                              capture_output=True, text=True, timeout=120)
        content = path.read_bytes() if path.exists() else None
        return done, content


class StoreTest(unittest.TestCase):
    def expect_pulled(self, url, environment, *flags):
        start = time.monotonic()
        done, content = pull(url, environment, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["size_bytes"], SIZE)
        self.assertEqual(hashlib.sha256(content).hexdigest(), SHA256)
        print(f"{url.partition('?')[0]}: {SIZE / 1e6 / (time.monotonic() - start):.0f} MB/s", file=sys.stderr)

    def expect_refused(self, url, environment, reason):
        done, content = pull(url, environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertIsNone(content)


class MotoTest(StoreTest):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.server = subprocess.Popen([FOLDER / "venv/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(port, cls.server)
        cls.endpoint = f"http://127.0.0.1:{port}"
        cls.environment = {"AWS_ENDPOINT_URL": cls.endpoint, "AWS_ACCESS_KEY_ID": "key",
                           "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
        s3 = boto3.client("s3", endpoint_url=cls.endpoint, aws_access_key_id="key", aws_secret_access_key="secret",
                          region_name="eu-central-1")
        s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        s3.put_object(Bucket="bucket", Key=KEY, Body=CONTENT)
        s3.put_object(Bucket="bucket", Key="public", Body=CONTENT, ACL="public-read")
        cls.presigned = s3.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": KEY})

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()

    def test_a_signed_read(self):
        self.expect_pulled(f"s3://bucket/{KEY}", self.environment)

    def test_an_anonymous_read(self):
        self.expect_pulled("s3://bucket/public", {"AWS_ENDPOINT_URL": self.endpoint})

    def test_a_presigned_url(self):
        self.expect_pulled(self.presigned, {}, "--sha256", SHA256)

    def test_a_missing_key(self):
        self.expect_refused("s3://bucket/missing", self.environment, "404 NoSuchKey")


class MotoSignatureTest(StoreTest):
    """moto checks signatures, by botocore's code, once this many requests have set it up."""

    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.server = subprocess.Popen([FOLDER / "venv/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)],
                                      env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "5"},
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(port, cls.server)
        endpoint = f"http://127.0.0.1:{port}"
        keys = {"endpoint_url": endpoint, "region_name": "us-east-1", "aws_access_key_id": "key",
                "aws_secret_access_key": "secret"}
        s3, iam = boto3.client("s3", **keys), boto3.client("iam", **keys)
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key=KEY, Body=CONTENT)
        iam.create_user(UserName="reader")
        iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        cls.environment = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                           "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()

    def test_a_signed_read(self):
        self.expect_pulled(f"s3://bucket/{KEY}", self.environment)

    def test_a_wrong_secret(self):
        self.expect_refused(f"s3://bucket/{KEY}", {**self.environment, "AWS_SECRET_ACCESS_KEY": "wrong"},
                            "403 SignatureDoesNotMatch")


class AzuriteTest(StoreTest):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.data = tempfile.TemporaryDirectory()
        cls.server = subprocess.Popen(
            ["node", FOLDER / "node_modules/azurite/dist/src/blob/main.js", "--blobHost", "127.0.0.1", "--blobPort",
             str(port), "--location", cls.data.name, "--silent", "--skipApiVersionCheck", "--disableTelemetry"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(port, cls.server)
        cls.endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"
        cls.environment = {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_BLOB_ENDPOINT": cls.endpoint}
        service = azure.storage.blob.BlobServiceClient(cls.endpoint, credential=AZURE_KEY)
        service.create_container("container")
        service.create_container("open", public_access="blob")
        service.get_blob_client("container", KEY).upload_blob(CONTENT)
        service.get_blob_client("open", "public").upload_blob(CONTENT)
        cls.sas = azure.storage.blob.generate_blob_sas(
            AZURE_ACCOUNT, "container", KEY, account_key=AZURE_KEY, permission="r", expiry="2099-01-01T00:00:00Z")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.data.cleanup()

    def test_a_read_with_the_shared_key(self):
        self.expect_pulled(f"az://{AZURE_ACCOUNT}/container/{KEY}",
                           {**self.environment, "AZURE_STORAGE_KEY": AZURE_KEY})

    def test_a_read_with_a_sas_token(self):
        self.expect_pulled(f"az://{AZURE_ACCOUNT}/container/{KEY}",
                           {**self.environment, "AZURE_STORAGE_SAS_TOKEN": self.sas})

    def test_an_anonymous_read(self):
        self.expect_pulled(f"az://{AZURE_ACCOUNT}/open/public", self.environment)

    def test_a_wrong_key(self):
        self.expect_refused(f"az://{AZURE_ACCOUNT}/container/{KEY}",
                            {**self.environment, "AZURE_STORAGE_KEY": "d3Jvbmc="}, "403 ")

    def test_a_missing_blob(self):
        self.expect_refused(f"az://{AZURE_ACCOUNT}/container/missing",
                            {**self.environment, "AZURE_STORAGE_KEY": AZURE_KEY}, "404 BlobNotFound")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
