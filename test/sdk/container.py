"""A container of a pod: whenever it reads a line, it gets credentials as programs do, and writes an answer.

The one argument is boto3 or awscli, with -s3 at the end if a bucket is to be used. Nothing is set in code.
"""

import json
import subprocess
import sys


def boto3():
    import boto3

    session = boto3.Session()

    def present():
        credentials = session.get_credentials()
        if credentials is None:
            raise RuntimeError("boto3 finds no credentials")
        session.client("sts").get_caller_identity()
        # Of most services a client can't be made without a region.
        region = session.client("ec2").meta.region_name
        return {"Presented": credentials.get_frozen_credentials().token, "Region": region}

    return present


def awscli():
    def call(*arguments):
        done = subprocess.run([sys.executable, "-m", "awscli", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def present():
        identity = json.loads(call("sts", "get-caller-identity", "--output", "json"))
        settings = [line.split() for line in call("configure", "list").splitlines()]
        region = next(words[1] for words in settings if words[:1] == ["region"])
        # The stand-in names the session here.
        return {"Presented": identity["UserId"].partition(":")[2], "Region": region}

    return present


def boto3_s3():
    import boto3

    session = boto3.Session()
    client = session.client("s3")

    def present():
        client.put_object(Bucket="shop", Key="boto3", Body=b"hello")
        body = client.get_object(Bucket="shop", Key="boto3")["Body"].read()
        return {"Presented": body.decode(), "Region": session.region_name}

    return present


def awscli_s3():
    def copy(source, target, **options):
        command = [sys.executable, "-m", "awscli", "s3", "cp", source, target]
        done = subprocess.run(command, capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def present():
        copy("-", "s3://shop/awscli", input="hello")
        return {"Presented": copy("s3://shop/awscli", "-"), "Region": "us-east-1"}

    return present


present = {"boto3": boto3, "awscli": awscli, "boto3-s3": boto3_s3, "awscli-s3": awscli_s3}[sys.argv[1]]()
for _ in sys.stdin:
    try:
        answer = present()
    except Exception as problem:  # whatever it is, the test reads it
        answer = {"Error": str(problem)}
    print(json.dumps(answer), flush=True)
