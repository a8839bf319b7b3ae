#!/usr/bin/env python3
"""An agent that appends each message to a file per conversation and answers with the count."""
import html, json, pathlib, re, sys, uuid

def write(**frame):
    print("---ARIZUKO_OUTPUT_START---", json.dumps(frame), "---ARIZUKO_OUTPUT_END---", sep="\n", flush=True)

def answer(prompt, notes):
    block = re.search(r"<messages>(.*)</messages>", prompt, re.DOTALL)[1]
    with notes.open("a") as file:
        for text in re.findall(r"<message [^>]*>(.*?)</message>", block, re.DOTALL):
            file.write(json.dumps(html.unescape(re.sub(r"<[^>]*>", "", text))) + "\n")
    lines = notes.read_text().splitlines()
    return f"Note {len(lines)}: {json.loads(lines[-1])[:4000]}"

for line in map(json.loads, sys.stdin):
    if line["type"] == "start":
        known = re.fullmatch("[0-9a-f]{32}", line["sessionId"])
        session = line["sessionId"] if known else uuid.uuid4().hex
    if line["type"] in ("start", "message"):
        try:
            result = answer(line["prompt"], pathlib.Path(f"notes-{session}.jsonl"))
            write(status="ok", turnId=line["turnId"], newSessionId=session, result=result)
        except Exception as problem:
            write(status="error", kind="transient", turnId=line["turnId"], error=f"cannot take notes: {problem}")
